"""A story to judge: how far one has come, the story with its sentence marked; and the keys that answer."""

import html

import gradio as gr

from ..handlers.judge import Question
from . import filled_text

# The keys press the buttons that are on the page, so that all that holds of a click holds of a key. One that is held
# down answers once, and what is typed into a field is no answer.
_KEYS = """
const buttons = {y: 'judge-yes', n: 'judge-no', b: 'judge-back'};
const press = event => {
  if (!element.isConnected) return document.removeEventListener('keydown', press);
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest('input:not([type=checkbox]), textarea, select, [contenteditable=true]')) return;
  if (!document.querySelector('#judge-keys input')?.checked) return;
  document.getElementById(buttons[event.key.toLowerCase()])?.click();
};
document.addEventListener('keydown', press);
"""

_STYLE = """
.progress { display: flex; align-items: center; gap: 12px; }
progress {
  appearance: none; flex: 1; max-width: 24rem; height: 12px; overflow: hidden;
  border: 1px solid var(--body-text-color-subdued); border-radius: 6px; background: transparent;
}
progress::-webkit-progress-bar { background: transparent; }
progress::-webkit-progress-value { background: var(--button-primary-background-fill); }
progress::-moz-progress-bar { background: var(--button-primary-background-fill); }
section p { font-size: 1.1rem; padding-block: 8px; }
"""


def component() -> gr.HTML:
    return gr.HTML(elem_classes=["filled-text"], js_on_load=_KEYS, css_template=_STYLE, apply_default_css=False)


def render(question: Question) -> str:
    """The progress and the story; of one that was judged before, what was said."""
    done, total = question.done, question.total
    progress = (
        f'<p class="progress"><progress value="{done}" max="{total}" aria-label="Stories judged"></progress>'
        f"<span>{done} of {total} judged</span></p>"
    )
    if question.item is None:
        story = "<p>You have judged them all. Thank you! Your answers are kept.</p>"
    else:
        story = filled_text.render(question.pieces, "The story, with the sentence to judge marked")
        if question.said is not None:
            said = "yes" if question.said else "no"
            story += f'<p class="said">You answered <strong>{html.escape(said)}</strong>. A new answer replaces it.</p>'
    return f'{progress}<div aria-live="polite">{story}</div>'
