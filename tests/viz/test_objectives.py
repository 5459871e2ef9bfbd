"""Figures 3 and 4 on a live text: what is drawn is what the views and the rule say."""

import numpy as np
import pytest
import torch

from magnet_lab import viz
from magnet_lab.encoding import DEFAULT_INSTRUCTION
from magnet_lab.views import make_views
from magnet_lab.viz import example, objectives_figure, objectives_text, overview_figure, overview_text

TEXT = "Tom had a red ball. One day he lost it and was very sad."


@pytest.fixture(scope="module")
def made(tiny_lab):
    return example(tiny_lab.tokenizer, TEXT, seed=3, positive="Tom lost his ball.")


def by_hand(made) -> dict[str, dict[int, int]]:
    """Which output is asked for which token, from where tokens were hidden and spans are: always one to the left."""
    selected, spans = made.views.selected[0].tolist(), made.views.span_ids[0].tolist()
    return {
        "MNTP": {place - 1: place for place, chosen in enumerate(selected) if chosen},
        "MSG": {place - 1: place for place, span in enumerate(spans) if span > 0},
    }


def test_the_views_are_those_of_training(tiny_lab, made):
    tokenizer = tiny_lab.tokenizer
    ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(TEXT, add_special_tokens=False)["input_ids"]]])
    generator = torch.Generator().manual_seed(3)
    options = {"max_spans": 1, "shortest": 2, "longest": 5}
    views = make_views(ids, torch.ones_like(ids), tokenizer=tokenizer, generator=generator, **options)
    assert torch.equal(made.views.input_ids, views.input_ids) and torch.equal(made.views.span_ids, views.span_ids)
    assert "".join(made.tokens[1:]) == TEXT
    assert tokenizer.decode(made.x.ids[1:-1]) == f"{DEFAULT_INSTRUCTION}: {TEXT}"
    assert made.x.ids[-1] == tokenizer.eos_token_id


def test_figure_3_asks_each_output_for_the_next_token(made):
    mntp, msg, of_text, of_paraphrase = objectives_figure(made).axes
    for axes, (objective, wanted) in zip((mntp, msg), by_hand(made).items(), strict=True):
        said = {int(text.get_position()[0]): text.get_text() for text in axes.texts}
        assert said == {place: f"→ {made.tokens[token].strip()}" for place, token in wanted.items()}, objective
    assert [text.get_text() for text in of_text.texts] == ["→ e"]
    assert [text.get_position()[0] for text in of_paraphrase.texts] == [len(made.positive.pieces) - 1]


def test_figure_3_draws_what_an_output_could_read(made):
    spans = made.views.span_ids[0].numpy()
    axes = objectives_figure(made).axes[1]
    for query in by_hand(made)["MSG"]:
        own = (spans == spans[query]) & (np.arange(len(spans)) <= query) & (spans > 0)
        read = {int(line.get_xdata()[0]) for line in axes.lines if int(line.get_xdata()[1]) == query}
        assert read == set(np.flatnonzero((spans == 0) | own).tolist())


def test_figure_3_in_words(made):
    spans, wanted = made.views.span_ids[0].tolist(), []
    context = viz.ranges([place for place, span in enumerate(spans) if span == 0])
    for pairs in by_hand(made).values():
        for place, token in pairs.items():
            own = [key for key in range(place + 1) if spans[key] == spans[place] > 0]
            read = f"context {context}" + (f", own span {viz.ranges(own)}" if own else "")
            wanted.append(f"output {place} → token {token}, {made.tokens[token].strip()}; it reads {read}")
    said = [line.strip() for line in objectives_text(made).splitlines() if line.startswith("  output")]
    assert said == wanted


def test_figure_4_counts_its_targets_and_shows_the_mask(made):
    hidden, missing = (len(pairs) for pairs in by_hand(made).values())
    figure = overview_figure(made)
    words = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert f"MNTP: {hidden} hidden token" in words and f"MSG: {missing} span tokens" in words
    x, positive, hybrid = (np.asarray(inset.images[0].get_array()) for inset in figure.axes[0].child_axes)
    assert x.all() and len(x) == len(made.x.ids) and positive.all()
    spans = made.views.span_ids[0].numpy()
    assert (hybrid[0] == (spans == 0)).all()  # the first token is context: it sees the context
    text = overview_text(made)
    assert f"MNTP: {hidden} hidden" in text and f"MSG: {missing} span" in text
    assert text.count("▢") == hidden + 1  # in the strip, and where the mark is explained


def test_an_empty_text_is_named(tiny_lab):
    with pytest.raises(ValueError, match="the text is empty"):
        example(tiny_lab.tokenizer, "  ")
