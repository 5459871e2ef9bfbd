"""The palette holds what DESIGN promises: text that reads, and classes that differ in lightness."""

import itertools

import pytest

from magnet_lab.viz import palette


def luminance(colour: str) -> float:
    """WCAG 2: relative luminance of `#RRGGBB`."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("kind", palette.TOKEN_CLASSES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_reads_on_its_background(kind, theme):
    pair = getattr(kind, theme)
    assert contrast(pair.background, pair.text) >= 7


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_classes_differ_without_any_hue(theme):
    backgrounds = [getattr(kind, theme).background for kind in palette.TOKEN_CLASSES]
    for number, one in enumerate(backgrounds):
        for other in backgrounds[:number]:
            assert contrast(one, other) >= 1.7


def test_every_class_but_the_plain_one_has_a_second_channel():
    assert palette.CONTEXT.css == "" and all(kind.css and any(kind.marks) for kind in palette.TOKEN_CLASSES[1:])


def test_mask_tones_differ_without_any_hue():
    tones = [palette.BLOCKED, palette.REACHED, palette.SEES]
    for one, other in itertools.pairwise(tones):
        assert contrast(one.background, other.background) >= 1.7
    for tone in tones:
        assert contrast(tone.background, tone.text) >= 4.5


def test_css_has_both_themes_of_every_class():
    rules = palette.css()
    for kind in palette.TOKEN_CLASSES:
        assert f".token.{kind.name} {{ background: {kind.light.background}" in rules
        assert f".dark .token.{kind.name} {{ background: {kind.dark.background}" in rules
