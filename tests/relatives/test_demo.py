"""The models that the app's page of relatives talks to: made, kept, read back and measured."""

import json

import pytest
import torch
from torch.nn.functional import cross_entropy

from magnet_lab.relatives import demo
from magnet_lab.relatives.prefix_lm.masks import mode_span_ids


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All three after a few steps."""
    folder = tmp_path_factory.mktemp("demo")
    for name in demo.NAMES:
        demo.make(name, folder, quick=True)
    return folder


@pytest.fixture(scope="module")
def restorer(folder):
    return demo.load_restorer(folder)


def test_what_is_read_back_is_what_was_trained_rounded(folder, tmp_path):
    """Trained a second time, without a file between: the same seed, the same weights."""
    trained = {}

    def keep(path, model, *_):
        trained[path.name] = model.state_dict()
        raise InterruptedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "_write", keep)
        for name in ("restorer", "prefix"):
            with pytest.raises(InterruptedError):
                demo.make(name, tmp_path, quick=True)
    restorer, prefix = demo.load_restorer(folder), demo.load_prefix_writer("prefix", folder)
    read = {
        "restorer": {
            **{f"encoder.{name}": value for name, value in restorer.encoder.state_dict().items()},
            **{f"decoder.{name}": value for name, value in restorer.decoder.state_dict().items()},
        },
        "prefix": prefix.model.state_dict(),
    }
    for name, weights in read.items():
        assert weights.keys() == trained[name].keys()
        for key, weight in weights.items():
            assert torch.equal(weight, trained[name][key].half().float()), key
    assert restorer.encoder.words is restorer.decoder.words
    assert not restorer.encoder.training and not prefix.model.training


def test_losses_are_those_of_each_word(folder):
    """In training's pass and in writing, word by word: under the sound mask they are one."""
    writer = demo.load_prefix_writer("prefix", folder)
    stream = demo._stream(writer.tokenizer, demo._stories("plain-stories-held-out.txt"))
    generator = torch.Generator().manual_seed(demo.SEED)
    starts = torch.randint(len(stream) - demo.LENGTH + 1, (8,), generator=generator).tolist()
    half, losses = demo.LENGTH // 2, []
    for start in starts:
        row = stream[None, start : start + demo.LENGTH]
        for place in range(half, demo.LENGTH):
            seen = row[:, :place]
            with torch.no_grad():
                scores = writer.model(seen, mode_span_ids("prefix", torch.ones_like(seen), half))
            losses.append(float(cross_entropy(scores[:, -1], row[:, place])))
    expected = sum(losses) / len(losses)
    assert writer.measured["in writing"] == pytest.approx(expected, abs=2e-3)
    assert writer.measured["in training's pass"] == pytest.approx(expected, abs=2e-3)
    assert demo.load_prefix_writer("prefix-printed", folder).model.rule is not writer.model.rule


def test_short_sentences_are_short_and_known(restorer):
    tokenizer = restorer.tokenizer
    stories = ["The dog ran home. It was the zyzzyva that he had to see. No. He ran."]
    assert demo.short_sentences(tokenizer, [*stories, *stories]) == ["The dog ran home."]
    assert demo.unknown_words(tokenizer, "The Zyzzyva ran <b>home</b>.") == [
        "zyzzyva",
        "<",
        "b",
        ">",
        "<",
        "/",
        "b",
        ">",
    ]


def test_ids_are_written_up_to_the_end(restorer):
    tokenizer = restorer.tokenizer
    ids = tokenizer("the dog ran .", add_special_tokens=False)["input_ids"]
    assert demo.written(tokenizer, [*ids, tokenizer.eos_token_id, *ids]) == "the dog ran."
    assert demo.written(tokenizer, [ids[0], tokenizer.unk_token_id]) == "the ▢"


def test_a_vector_does_not_hang_on_its_neighbours(restorer):
    """Of a batch of unlike lengths each is what it is alone."""
    sentences = ["He ran.", "The big dog ran home to eat all of its food."]
    together = restorer.encode(sentences)
    assert together.shape == (2, demo.SHAPE.d_repr)
    for row, sentence in zip(together, sentences, strict=True):
        torch.testing.assert_close(row, restorer.encode([sentence])[0], rtol=1e-4, atol=1e-5)


def test_a_model_that_is_missing_is_named_with_its_command(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"python -m magnet_lab\.relatives\.demo prefix-printed makes it"):
        demo.load_prefix_writer("prefix-printed", tmp_path)
    with pytest.raises(FileNotFoundError, match="'restorer' is not there"):
        demo.load_restorer(tmp_path)


def test_what_ships_is_small_and_good_enough():
    """Each model that ships says how good it is; these are the least that the page is worth."""
    files = [path for path in demo.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 4e6
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    restorer = demo.load_restorer()
    assert restorer.measured["R-L"] > 80 and restorer.measured["whole (%)"] > 50
    sentences = ["The dog ran home.", "She was very happy.", "He went to the store to buy food."]
    restored = restorer.restore(restorer.encode(sentences))
    assert sum(one == other.lower() for one, other in zip(restored, sentences, strict=True)) >= 2
    losses = {name: demo.load_prefix_writer(name).measured for name in demo.ARMS}
    assert losses["prefix"]["in writing"] == pytest.approx(losses["prefix"]["in training's pass"], abs=1e-3)
    for name in demo.NAMES:
        about = json.loads((demo.FOLDER / name / "about.json").read_text())
        assert about["measured"]
