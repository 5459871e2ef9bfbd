"""A folder that `SentenceTransformer(folder)` loads, with the vectors of `Magnet.encode`.

The folder holds nothing of ours. sentence-transformers runs no module from elsewhere unless it is told to trust remote
code, and it need not: all that our encoding does can be said in its own terms.

    the bidirectional mask      `is_causal: false` in the model's config
    the adapter                 merged into the weights
    the instruction             the prompt that is put before every text
    the end-of-text token       written behind every text by the tokenizer ("last")
    the pooling                 its own: the last token, or the mean over the tokens behind the prompt
"""

import copy
import re
import tempfile
from pathlib import Path

from peft import PeftModel
from tokenizers import Regex, Tokenizer
from tokenizers.normalizers import Replace, Sequence
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from magnet_lab import zoo
from magnet_lab.decoder import start_ids
from magnet_lab.encoding import DEFAULT_INSTRUCTION
from magnet_lab.integrations import needs
from magnet_lab.model import Magnet

with needs("sentence_transformers"):
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

POOLINGS = {"last": "lasttoken", "mean": "mean"}  # ours -> theirs

# Short ones show a mask, a token or a prompt that differs best.
PROBES = ["Hi", "A man plays a guitar.", "The little dog ran into the garden."]


def save(lab: Magnet, folder: str | Path, *, instruction: str | None = None, pooling: str = "last") -> None:
    """Write a model for sentence-transformers, in its present dtype, and see that it gives the same vectors there.

    Texts that are too long are cut there, as with `truncate=True`. With "mean", any other prompt than the folder's own
    counts a token of the text as its own: write a folder for each instruction.

    Args:
        folder: a new one. It holds an encoder only: to generate and infill, keep the model that it is made from.
        instruction, pooling: as in `Magnet.encode`; "echo" cannot be said in terms of sentence-transformers.

    Raises:
        ValueError: for such a pooling, "mean" without an instruction where texts open with a token of their own, a
            folder with files in it, or a model whose vectors would differ.
    """
    folder = Path(folder)
    if pooling not in POOLINGS:
        raise ValueError(f"sentence-transformers has no pooling {pooling!r}; choose {' or '.join(POOLINGS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already; give the name of a new folder")
    instruction = DEFAULT_INSTRUCTION if instruction is None else instruction
    if pooling == "mean" and not instruction and start_ids(lab.tokenizer):
        raise ValueError(
            "sentence-transformers leaves an instruction out of a mean, but without one the opening token would count "
            "as text; give an instruction or take pooling 'last'"
        )
    prompt = f"{instruction if instruction[-1] in ':.?!' else f'{instruction}:'} " if instruction else ""

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        model, whole = Path(part) / "model", Path(part) / "whole"
        _encoder(lab).save_pretrained(model)
        _tokenizer(lab, prompt, pooling).save_pretrained(model)
        hidden = lab.model.config.get_text_config().hidden_size
        SentenceTransformer(
            modules=[
                Transformer(str(model)),
                Pooling(hidden, POOLINGS[pooling], include_prompt=pooling != "mean"),
            ],
            # By these two names, since encode_query and encode_document would take an empty prompt without them.
            prompts={"query": prompt, "document": prompt},
            default_prompt_name="document",
            similarity_fn_name="cosine",
            device="cpu",
        ).save(str(whole), create_model_card=False)
        _compare(lab, whole, instruction, pooling)
        whole.rename(folder)


def _encoder(lab: Magnet) -> PreTrainedModel:
    """The decoder without its head over the vocabulary, the adapter merged, bidirectional. Copied: merging writes."""
    model = copy.deepcopy(lab.use(None).model)
    if lab.adapter is not None:
        model = PeftModel.from_pretrained(model, zoo.adapter_path(lab.name, lab.adapter)).merge_and_unload()
    encoder = model.get_decoder()
    encoder.config.is_causal = False
    return encoder


def _tokenizer(lab: Magnet, prompt: str, pooling: str) -> PreTrainedTokenizerFast:
    """One that makes of prompt and text together the ids of `encoding.sentence_ids`.

    Of the plain class, which is read from its file as it was written; others build some of their parts anew.
    """
    ours = lab.tokenizer
    backend = Tokenizer.from_str(ours.backend_tokenizer.to_str())
    opening = [ours.bos_token] if start_ids(ours) else []
    closing = [ours.eos_token] if pooling == "last" else []
    backend.post_processor = TemplateProcessing(
        single=[*opening, "$A", *closing],
        special_tokens=[(token, ours.convert_tokens_to_ids(token)) for token in dict.fromkeys(opening + closing)],
    )
    if pooling == "mean" and prompt:
        # How many tokens the prompt takes is found there by the prompt alone, where its last space, else part of the
        # text's first token, would count as one more.
        last_space = Replace(Regex(rf"(?<=\A{re.escape(prompt[:-1])}) \z"), "")
        backend.normalizer = Sequence([last_space, backend.normalizer]) if backend.normalizer else last_space
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=ours.bos_token,
        eos_token=ours.eos_token,
        unk_token=ours.unk_token,
        pad_token=ours.pad_token or ours.eos_token,
        split_special_tokens=True,
        model_max_length=lab.max_length,
        padding_side="right",
        truncation_side="right",
    )


def _compare(lab: Magnet, folder: Path, instruction: str, pooling: str) -> None:
    """Not every kind of model heeds `is_causal`, and some tokenizers do not come back as they were written: look."""
    theirs = SentenceTransformer(str(folder), device=str(lab.device), local_files_only=True)
    ours = lab.encode(PROBES, instruction=instruction, pooling=pooling)
    found = theirs.encode(PROBES, convert_to_tensor=True).float().cpu()
    off = float(((found - ours).norm(dim=1) / ours.norm(dim=1)).max())
    if not off < (1e-3 if lab.dtype == torch.float32 else 5e-2):
        raise ValueError(
            f"{lab.name} cannot be written for sentence-transformers: loaded there, its vectors with pooling "
            f"{pooling!r} are {off:.1%} off those of Magnet.encode"
        )
