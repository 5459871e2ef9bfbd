"""What a link may say for each kind of input; the links themselves are followed in tests/browser."""

import gradio as gr
import pytest

from magnet_lab.app import links

CHOICES = [("one", "a"), ("two", "b")]


@pytest.mark.parametrize(
    ("place", "text", "value"),
    [
        (gr.Textbox(), "<b>any</b>\n", "<b>any</b>\n"),
        (gr.Textbox(), "\ud800", "?"),
        (gr.Number(minimum=0), "7", 7),
        (gr.Number(minimum=0), "-1", None),
        (gr.Number(), "1e10", None),
        (gr.Number(), "nan", None),
        (gr.Slider(0, 2), "0.5", 0.5),
        (gr.Slider(0, 2), "2.1", None),
        (gr.Slider(0, 2), "inf", None),
        (gr.Slider(0, 2), "two", None),
        (gr.Checkbox(), "true", True),
        (gr.Checkbox(), "false", False),
        (gr.Checkbox(), "yes", None),
        (gr.Radio(CHOICES), "b", "b"),
        (gr.Radio(CHOICES), "two", None),
        (gr.Dropdown(CHOICES), "c", None),
        (gr.CheckboxGroup(CHOICES), "b,c,a", ["b", "a"]),
        (gr.CheckboxGroup(CHOICES), "c", None),
    ],
)
def test_values(place, text, value):
    found = links._value(place, text)
    assert found == value and type(found) is type(value)
