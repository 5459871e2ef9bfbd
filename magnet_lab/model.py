"""`Magnet`: one decoder, three verbs. The mode is an argument of the call, never a state of the model."""

import copy
import threading
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    StoppingCriteria,
    StoppingCriteriaList,
    TextIteratorStreamer,
)

from magnet_lab import encoding, infilling, scoring, zoo
from magnet_lab.decoder import max_length, start_ids, text_ids
from magnet_lab.spans import Sampling

DEFAULT_ADAPTER = "magnet"

# transformers draws from the global random state, so seeded draws of two threads would mix.
_sampling = threading.Lock()


class Magnet:
    """One decoder-only language model that generates (causal mask), encodes (bidirectional) and infills (MAGNET).

    Safe to use from several threads, in several modes at once.

    Attributes:
        name: what it was loaded as.
        adapter: name or path of the adapter in use, or None for the base model.
        model: the causal language model of transformers, with the adapter's layers in place.
        tokenizer: its tokenizer.
        max_length: the longest text it can read, in tokens.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "model",
        adapter: str | None = None,
        base: PreTrainedModel | None = None,
    ):
        self.name = name
        self.adapter = adapter
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.max_length = max_length(model)
        self._base = base if base is not None else model

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str,
        *,
        adapter: str | None = DEFAULT_ADAPTER,
        device: str | torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> "Magnet":
        """Load a model.

        Args:
            name_or_path: "tiny", "small", "llama-2-7b", or the hub id or folder of any decoder with rotary positions.
            adapter: "magnet", "llm2vec" or "mntp" where the model comes with one, the hub id or folder of a PEFT
                adapter, or None for the base model. Where a model has no "magnet" adapter, the default is the base.
            device: the GPU where there is one, by default.
            dtype: by default bfloat16 where the machine has instructions for it, else float32: see `best_dtype`.

        Raises:
            zoo.ModelUnavailable: with the reason and what to do.
        """
        name_or_path = str(name_or_path)
        device = torch.device(device) if device is not None else best_device()
        model, tokenizer = zoo.load(name_or_path, device=device, dtype=dtype or best_dtype(device))
        lab = cls(model, tokenizer, name=name_or_path)
        if adapter == DEFAULT_ADAPTER and zoo.adapter_path(name_or_path, adapter) is None:
            warnings.warn(
                f"{name_or_path} comes without a {adapter!r} adapter: this is the base model, which has not learned to "
                "infill or encode. adapter=None (--adapter none) asks for it without this warning.",
                stacklevel=2,
            )
            return lab
        return lab.use(adapter)

    def use(self, adapter: str | None) -> "Magnet":
        """Another adapter on the same base tensors; both can be used at once, from several threads.

        PEFT keeps the active adapter as a state of the module tree, so the new one gets a module tree of its own. Only
        the tree is copied: the base weights are in memory once.
        """
        if adapter is None:
            return Magnet(self._base, self.tokenizer, name=self.name)
        path = zoo.adapter_path(self.name, adapter)
        if path is None:
            raise zoo.ModelUnavailable(
                f"{self.name} comes without an adapter named {adapter!r}; give the folder or the hub id of a PEFT "
                "adapter, or None for the base model."
            )
        from peft import PeftModel

        shared = {id(tensor): tensor for tensor in (*self._base.parameters(), *self._base.buffers())}
        tree = copy.deepcopy(self._base, shared)
        model = PeftModel.from_pretrained(tree, path, is_trainable=False).get_base_model()
        return Magnet(model, self.tokenizer, name=self.name, adapter=adapter, base=self._base)

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def generate(self, text: str, *, stream: bool = False, seed: int | None = None, **decoding) -> str | Iterator[str]:
        """Go on with a text under the causal mask: transformers' own `generate`.

        Args:
            text: what to go on with; may be empty.
            stream: return an iterator over the pieces of text as they come; closing it stops the generation.
            seed: makes sampling repeatable.
            **decoding: any option of transformers' `generate`: max_new_tokens (50 by default), temperature, top_p,
                top_k (each of which turns sampling on), num_beams, repetition_penalty …

        Returns:
            The continuation, without the text itself.

        Raises:
            ValueError: if the text and the tokens asked for exceed what the model can read.
        """
        ids = start_ids(self.tokenizer, required=not text) + text_ids(self.tokenizer, text)
        asked_to_sample = bool({"temperature", "top_p", "top_k"} & decoding.keys())
        defaults = {"max_new_tokens": 50, "do_sample": asked_to_sample, "pad_token_id": self._pad_token_id}
        decoding = defaults | decoding
        if decoding["max_new_tokens"] < 1:
            raise ValueError(f"max_new_tokens is {decoding['max_new_tokens']}; at least 1 is needed")
        if len(ids) + decoding["max_new_tokens"] > self.max_length:
            raise ValueError(
                f"the text has {len(ids):,} tokens; with {decoding['max_new_tokens']:,} new ones that exceeds the "
                f"model's {self.max_length:,}; shorten it or ask for fewer"
            )
        input_ids = torch.tensor([ids], device=self.device)
        arguments = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids), **decoding}
        if not stream:
            output = self._generate(arguments, seed)
            return self.tokenizer.decode(output[0, len(ids) :], skip_special_tokens=True)
        return self._stream(arguments, seed)

    def _generate(self, arguments: dict, seed: int | None) -> Tensor:
        with torch.no_grad():
            if not arguments["do_sample"]:
                return self.model.generate(**arguments)
            with _sampling, torch.random.fork_rng(enabled=seed is not None):
                if seed is not None:
                    torch.manual_seed(seed)
                return self.model.generate(**arguments)

    def _stream(self, arguments: dict, seed: int | None) -> Iterator[str]:
        streamer = TextIteratorStreamer(self.tokenizer, skip_prompt=True, skip_special_tokens=True)
        stop, failure = _Stop(), []
        own = arguments.pop("stopping_criteria", None) or []

        def work():
            try:
                criteria = StoppingCriteriaList([*own, stop])
                self._generate({**arguments, "streamer": streamer, "stopping_criteria": criteria}, seed)
            except BaseException as error:  # raised again where the pieces are read
                failure.append(error)
                streamer.end()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield from streamer
        finally:
            stop.now = True
            thread.join()
        if failure:
            raise failure[0]

    def encode(
        self,
        texts: Sequence[str],
        *,
        instruction: str | None = None,
        pooling: str = "last",
        truncate: bool = False,
        progress: bool = False,
    ) -> Tensor:
        """One vector for each text, `(n, hidden)`, under the bidirectional mask: see `encoding.encode`."""
        return encoding.encode(
            self.model,
            self.tokenizer,
            texts,
            instruction=instruction,
            pooling=pooling,
            truncate=truncate,
            progress=progress,
        )

    def encode_words(self, sentences: Sequence[Sequence[str]], *, progress: bool = False) -> list[Tensor]:
        """For each sentence, a list of words, one vector a word `(words, hidden)`: see `encoding.encode_words`."""
        return encoding.encode_words(self.model, self.tokenizer, sentences, progress=progress)

    def similarity(self, a: Tensor | Sequence[str], b: Tensor | Sequence[str]) -> Tensor:
        """Cosine similarity `(n, m)` of vectors `(n, hidden)` and `(m, hidden)`, or of two lists of texts."""
        a, b = (side if isinstance(side, Tensor) else self.encode(side) for side in (a, b))
        return encoding.similarity(a, b)

    def infill(
        self,
        text: str,
        *,
        num_candidates: int = 1,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int | None = None,
        sequential: bool = False,
        rank: str = "span",
        stream: bool = False,
    ) -> infilling.Infill | Iterator[infilling.Infill]:
        """Fill the blanks of a text under the MAGNET mask: see `infilling.infill`.

        Args:
            text: with `[blank]`, `[blank:12]` (tokens) or `[blank:8-16]` where something is missing.
            num_candidates, sequential, rank: as there.
            temperature, top_p, top_k, seed: sampling; at temperature 0 the likeliest token is taken each time.
            stream: return an iterator over snapshots, the last of which is the result; closing it stops the work.
        """
        snapshots = infilling.infill(
            self.model,
            self.tokenizer,
            text,
            num_candidates=num_candidates,
            sampling=Sampling(temperature, top_p, top_k, seed),
            sequential=sequential,
            rank=rank,
        )
        if stream:
            return snapshots
        *_, result = snapshots
        return result

    def score_infill(self, text: str, fills: list[str], *, mode: str = "infill") -> scoring.Score:
        """How likely given fills of a text's blanks are, `.perplexity` and `.log_probs`: see `scoring.score_infill`."""
        return scoring.score_infill(self.model, self.tokenizer, text, fills, mode=mode)

    @property
    def _pad_token_id(self) -> int | None:
        tokenizer = self.tokenizer
        return tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id

    def __repr__(self) -> str:
        return f"Magnet({self.name!r}, adapter={self.adapter!r}, device='{self.device}', dtype={self.dtype})"


class _Stop(StoppingCriteria):
    """Ends a generation once `now` is set from another thread."""

    now = False

    def __call__(self, input_ids, scores, **kwargs):
        return torch.full((len(input_ids),), self.now, dtype=torch.bool, device=input_ids.device)


def best_device() -> torch.device:
    """The accelerator where there is one, else the CPU."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def best_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 on a GPU that has it, and on a CPU with instructions for it, where it is about twice as fast.

    On other CPUs bfloat16 is emulated and slower than float32. The choice follows from the machine alone: one that
    timed both would fall differently on a busy day, and every score with it.
    """
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if device.type != "cpu" or not hasattr(torch.cpu, "get_capabilities"):  # older PyTorch does not tell
        return torch.float32
    has = torch.cpu.get_capabilities()
    return torch.bfloat16 if any(has.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16")) else torch.float32
