"""Paraphrases by a T5 model, as the paper makes its positives (Appendix A names Parrot).

They are written to a file one after the other, so that a run that was stopped goes on where it was and the next run has
them at once.
"""

import hashlib
import json
from pathlib import Path

import torch
from tqdm import tqdm

from magnet_lab import zoo

PARROT = "prithivida/parrot_paraphraser_on_T5"
BATCH = 32


def paraphrases(sentences: list[str], model_name: str | None = None) -> list[str]:
    """One paraphrase for each sentence, by beam search: the beam that shares the fewest words with the sentence.

    Args:
        model_name: hub id or folder of a sequence-to-sequence model that is prompted with "paraphrase: …"; Parrot.

    Raises:
        ModelUnavailable: if the model cannot be had.
    """
    model_name = model_name or PARROT
    key = hashlib.sha256(json.dumps([model_name, sentences]).encode()).hexdigest()[:20]
    path = zoo.cache_folder() / "paraphrases" / f"{key}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    made = _read(path)
    if len(made) == len(sentences):
        return made
    model, tokenizer = _load(model_name)
    with path.open("a", encoding="utf-8") as file, tqdm(total=len(sentences), initial=len(made), unit=" pairs") as bar:
        bar.set_description("paraphrasing")
        while len(made) < len(sentences):
            batch = sentences[len(made) : len(made) + BATCH]
            found = _paraphrase(model, tokenizer, batch)
            file.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in found)
            file.flush()
            made += found
            bar.update(len(found))
    return made


@torch.no_grad()
def _paraphrase(model, tokenizer, batch: list[str], beams: int = 4) -> list[str]:
    inputs = tokenizer([f"paraphrase: {text}" for text in batch], return_tensors="pt", padding=True, truncation=True)
    ids = model.generate(
        **inputs.to(model.device), num_beams=beams, num_return_sequences=beams, max_new_tokens=128, do_sample=False
    )
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
    choices = [texts[start : start + beams] for start in range(0, len(texts), beams)]
    return [
        min(found, key=lambda text: _shared(text, sentence)) for found, sentence in zip(choices, batch, strict=True)
    ]


def _shared(text: str, sentence: str) -> float:
    """Share of two texts' words that both have; an empty text is no paraphrase at all."""
    one, other = set(text.lower().split()), set(sentence.lower().split())
    return len(one & other) / len(one | other) if one else 1.0


def _read(path: Path) -> list[str]:
    """The paraphrases that are there already; a line that a kill cut short is taken off."""
    if not path.is_file():
        return []
    whole = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    path.write_text("".join(whole), encoding="utf-8")
    return [json.loads(line) for line in whole]


def _load(name: str):
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    from magnet_lab.model import best_device

    try:
        model = AutoModelForSeq2SeqLM.from_pretrained(name, use_safetensors=True, trust_remote_code=False)
        return model.to(best_device()).eval(), AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except Exception as error:  # the hub, transformers and tokenizers raise a dozen kinds here
        raise zoo.ModelUnavailable(
            f"the paraphrasing model {name!r} could not be loaded ({type(error).__name__}). It is fetched from the hub "
            "once; without it, give a file of pairs (--pairs FILE) or say `positives: rules` in the recipe."
        ) from error
