"""What the tests in a browser share."""

import os
import shutil

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
expect = playwright.expect

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="needs a chromium; CHROMIUM=/path/to/it names one"),
]

HOSTILE = "<s></s><img src=x onerror=alert(1)> ${alert(2)} `${alert(3)}` {{x}} \\u0041"
LONG = 60_000  # milliseconds, for what the model does on a busy machine
# A page waits for its turn where the machine is busy; what a test says is what comes, not how soon.
expect.set_options(timeout=LONG)


def text_box(page, name):
    return page.get_by_role("textbox", name=name, exact=True)


def refusal(page, sentence):
    """What is said beside an input that is refused; screen readers get the same words a second time."""
    return page.locator(".validation-error", has_text=sentence)
