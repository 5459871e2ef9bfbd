"""`magnet-lab doctor`: what can be wrong with an installation, each with its mend."""

import importlib.metadata
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

OK, NOTE, FAIL = "[OK]", "[--]", "[FAIL]"
PORT = 7860


@dataclass(frozen=True)
class Finding:
    """What a check found: OK, NOTE (fine, but good to know) or FAIL, then with its mend."""

    verdict: str
    text: str
    mend: str = ""

    def __str__(self) -> str:
        line = f"{self.verdict:<6} {self.text}"
        return f"{line}\n       mend: {self.mend}" if self.mend else line


def main() -> int:
    """Run every check and print what it finds.

    Returns:
        The exit code: 1 if anything failed.
    """
    failed = 0
    for check in CHECKS:
        for finding in _findings(check):
            print(finding, flush=True)
            failed += finding.verdict == FAIL
    print(f"\n{failed} to mend." if failed else "\nAll is well.")
    return 1 if failed else 0


def _findings(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """A check that breaks has found something too, and must not keep the others from running."""
    try:
        yield from check()
    except Exception as error:
        name = check.__name__.replace("_", " ")
        yield Finding(
            FAIL, f"{name}: {type(error).__name__}: {error}", "install magnet_lab again, in a fresh environment"
        )


def python_version() -> Iterator[Finding]:
    wanted = importlib.metadata.metadata("magnet-lab")["Requires-Python"]
    from packaging.specifiers import SpecifierSet

    found = platform.python_version()
    if SpecifierSet(wanted).contains(found, prereleases=True):
        yield Finding(OK, f"Python {found}")
    else:
        yield Finding(FAIL, f"Python {found} is not {wanted}", f"make the environment with a Python {wanted}")


def dependencies() -> Iterator[Finding]:
    """Each one is there, in a version that pyproject.toml allows."""
    from packaging.requirements import Requirement

    requirements = [Requirement(text) for text in importlib.metadata.requires("magnet-lab") or []]
    for requirement in requirements:
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        mend = f'{sys.executable} -m pip install "{requirement.name}{requirement.specifier}"'
        try:
            found = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(FAIL, f"{requirement.name} is missing", mend)
            continue
        if requirement.specifier.contains(found, prereleases=True):
            yield Finding(OK, f"{requirement.name} {found}")
        else:
            yield Finding(FAIL, f"{requirement.name} {found} is not {requirement.specifier}", mend)


def torch_works() -> Iterator[Finding]:
    import torch

    from magnet_lab.model import best_device, best_dtype

    device = best_device()
    dtype = best_dtype(device)
    ones = torch.ones(64, 64, device=device, dtype=dtype)
    if (ones @ ones).float().mean().item() != 64:
        mend = f"install torch {torch.__version__} again, or choose device='cpu'"
        yield Finding(FAIL, f"torch multiplies wrongly on {device} in {dtype}", mend)
        return
    yield Finding(OK, f"models will run on {device} in {str(dtype).removeprefix('torch.')}")


def tiny_works() -> Iterator[Finding]:
    import torch

    from magnet_lab import Magnet

    with _quiet():
        text = Magnet.from_pretrained("tiny", adapter=None, dtype=torch.float32).generate(
            "Once upon a time", max_new_tokens=8
        )
    if text.strip():
        yield Finding(OK, f"tiny goes on with 'Once upon a time': {text.strip()!r}")
    else:
        yield Finding(FAIL, "tiny writes nothing", "install magnet_lab again")


def small_is_intact() -> Iterator[Finding]:
    from magnet_lab import fetch, zoo

    folder = zoo.cache_folder() / "small"
    get = "magnet-lab generate 'Hello' --model small"
    if not folder.exists():
        yield Finding(NOTE, f"small is not here yet; the first use fetches it (93 MB): {get}")
    elif damaged := fetch.damaged_files(folder):
        yield Finding(FAIL, f"small is damaged: {', '.join(damaged)}", f"delete {folder}, then fetch it again: {get}")
    else:
        yield Finding(OK, f"small is intact in {folder}")


def cache_is_writable() -> Iterator[Finding]:
    from magnet_lab import fetch, zoo

    folder = zoo.cache_folder()
    mend = "make it writable, or set MAGNET_LAB_CACHE to a folder elsewhere"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{platform.node()}"
        probe.write_bytes(b"magnet")
        probe.unlink()
    except OSError as error:
        if fetch.is_whole(folder / "small"):
            yield Finding(NOTE, f"the cache folder {folder} can only be read; small is there, so that is enough")
        else:
            yield Finding(FAIL, f"the cache folder {folder} cannot be written ({error})", mend)
        return
    free = shutil.disk_usage(folder).free
    if free < fetch.SMALL.space and not fetch.is_whole(folder / "small"):
        needs = f"fetching small needs {fetch.SMALL.space / 1e9:.1f} GB"
        yield Finding(FAIL, f"only {free / 1e9:.1f} GB are free in {folder}; {needs}", f"free some; or {mend}")
    else:
        yield Finding(OK, f"the cache folder {folder} can be written; {free / 1e9:.0f} GB are free")


def port_is_free() -> Iterator[Finding]:
    with socket.socket() as server:
        # As servers do: a connection that was just closed must not count as taken.
        if sys.platform != "win32":
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", PORT))
        except OSError:
            yield Finding(NOTE, f"port {PORT} is taken: `magnet-lab app --port {PORT + 1}` uses another")
            return
    yield Finding(OK, f"port {PORT} is free for the app")


def hub_is_reachable() -> Iterator[Finding]:
    from huggingface_hub import constants, get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception:  # any failure of a network means the same here
        yield Finding(NOTE, f"the hub ({constants.ENDPOINT}) cannot be reached: tiny and small do without")
    else:
        yield Finding(OK, f"the hub ({constants.ENDPOINT}) can be reached")


def _quiet():
    """Without the progress bars of transformers, which would run through the report."""
    import contextlib
    import io

    return contextlib.redirect_stderr(io.StringIO())


CHECKS = (
    python_version,
    dependencies,
    torch_works,
    tiny_works,
    small_is_intact,
    cache_is_writable,
    port_is_free,
    hub_is_reachable,
)


if __name__ == "__main__":
    sys.exit(main())
