"""A written folder, loaded by `SentenceTransformer` as anyone would, against `Magnet.encode`."""

import json

import pytest
import torch

pytest.importorskip("sentence_transformers")

from decoders import FAMILIES, random_decoder, sentencepiece_tokenizer
from sentence_transformers import SentenceTransformer

from magnet_lab import Magnet
from magnet_lab.integrations import sentence_transformers_folder

TEXTS = [
    "A man plays a guitar.",
    "Hi",
    "The little dog ran into the big garden and barked at a bird.",
    "  two spaces, and one behind ",
    "\na line",
    ": a mark",
    "<s> and </s> are text",
    "naïve Zürich 東京",
]


@pytest.fixture(scope="module")
def adapted_lab(tiny_lab):
    return tiny_lab.use("magnet")


def difference(model: SentenceTransformer, lab: Magnet, texts=TEXTS, **options) -> float:
    """The largest between any two numbers of a text's vectors, all texts in one batch, in units of the largest."""
    theirs, ours = torch.tensor(model.encode(texts)), lab.encode(texts, truncate=True, **options)
    return float((theirs - ours).abs().max() / ours.abs().max())


@pytest.mark.parametrize("pooling, instruction", [("last", None), ("last", ""), ("mean", None), ("mean", "Is it so?")])
def test_the_vectors_are_those_of_encode(adapted_lab, tmp_path, pooling, instruction):
    options = {"instruction": instruction, "pooling": pooling}
    sentence_transformers_folder.save(adapted_lab, tmp_path / "new" / "folder", **options)
    model = SentenceTransformer(str(tmp_path / "new" / "folder"), device="cpu")
    assert difference(model, adapted_lab, **options) < 1e-5
    for text in TEXTS:  # nor does a batch of one, without padding, have another mask
        assert difference(model, adapted_lab, [text], **options) < 1e-5
    for encode in (model.encode_query, model.encode_document):
        assert (encode(TEXTS[:2]) == model.encode(TEXTS[:2])).all()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["folder"]


def test_the_folder_needs_no_code_of_ours_and_no_trust(adapted_lab, tmp_path):
    sentence_transformers_folder.save(adapted_lab, tmp_path / "folder")
    modules = json.loads((tmp_path / "folder" / "modules.json").read_text(encoding="utf-8"))
    assert all(module["type"].startswith("sentence_transformers.") for module in modules)
    assert {path.suffix for path in (tmp_path / "folder").rglob("*") if path.is_file()} == {".json", ".safetensors"}


def test_the_mask_is_bidirectional_and_the_difference_would_show(adapted_lab, tmp_path):
    sentence_transformers_folder.save(adapted_lab, tmp_path / "folder")
    causal = SentenceTransformer(str(tmp_path / "folder"), device="cpu", config_kwargs={"is_causal": True})
    assert difference(causal, adapted_lab) > 0.1


def test_the_model_itself_stays_as_it_was(adapted_lab, tiny_lab, tmp_path):
    before = [lab.encode(TEXTS[:3]) for lab in (adapted_lab, tiny_lab)]
    said = adapted_lab.generate("Once upon a time", max_new_tokens=5)
    sentence_transformers_folder.save(adapted_lab, tmp_path / "folder")
    for vectors, lab in zip(before, (adapted_lab, tiny_lab), strict=True):
        assert torch.equal(lab.encode(TEXTS[:3]), vectors)
        assert getattr(lab.model.config, "is_causal", True)
    assert adapted_lab.generate("Once upon a time", max_new_tokens=5) == said


@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_text_that_is_too_long_is_cut_in_the_same_place(adapted_lab, tmp_path, pooling):
    sentence_transformers_folder.save(adapted_lab, tmp_path / "folder", pooling=pooling)
    model = SentenceTransformer(str(tmp_path / "folder"), device="cpu")
    assert model.max_seq_length == 1024
    assert difference(model, adapted_lab, ["one two three four five six seven " * 200], pooling=pooling) < 1e-5


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"qwen2"}))
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_families_and_a_sentencepiece_tokenizer(family, pooling, tmp_path):
    """Also with windows in some layers: the text is cut where they would begin to hide a part of it."""
    tokenizer = sentencepiece_tokenizer([f"Given the sentence, find its representation: {TEXTS[0]} {TEXTS[2]}"] * 3)
    windows = {"sliding_window": 48} if family in ("gemma3", "mistral") else {}
    lab = Magnet(random_decoder(family, vocab_size=len(tokenizer), **windows), tokenizer)
    sentence_transformers_folder.save(lab, tmp_path / "folder", pooling=pooling)
    model = SentenceTransformer(str(tmp_path / "folder"), device="cpu")
    assert difference(model, lab, [*TEXTS, f"{TEXTS[2]} " * 20], pooling=pooling) < 1e-5


def test_bfloat16(tmp_path):
    lab = Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.bfloat16)
    sentence_transformers_folder.save(lab, tmp_path / "folder")
    model = SentenceTransformer(str(tmp_path / "folder"), device="cpu")
    assert model.dtype == torch.bfloat16
    assert difference(model, lab) < 0.05


def test_a_folder_that_would_lie_is_not_written(tiny_lab, tmp_path, monkeypatch):
    """As for a kind of model that does not heed `is_causal`."""
    encoder = sentence_transformers_folder._encoder

    def heedless(lab):
        model = encoder(lab)
        model.config.is_causal = True
        return model

    monkeypatch.setattr(sentence_transformers_folder, "_encoder", heedless)
    with pytest.raises(ValueError, match=r"tiny cannot be written .* pooling 'last' are \d+\.\d% off"):
        sentence_transformers_folder.save(tiny_lab, tmp_path / "folder")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_is_said(tiny_lab, tmp_path):
    with pytest.raises(ValueError, match="no pooling 'echo'; choose last or mean"):
        sentence_transformers_folder.save(tiny_lab, tmp_path / "folder", pooling="echo")
    with pytest.raises(ValueError, match="without one the opening token would count as text; give an instruction"):
        sentence_transformers_folder.save(tiny_lab, tmp_path / "folder", pooling="mean", instruction="")
    (tmp_path / "thesis.txt").write_text("all of it", encoding="utf-8")
    for place in (tmp_path, tmp_path / "thesis.txt"):
        with pytest.raises(ValueError, match="is there already; give the name of a new folder"):
            sentence_transformers_folder.save(tiny_lab, place)
    assert (tmp_path / "thesis.txt").read_text(encoding="utf-8") == "all of it"
