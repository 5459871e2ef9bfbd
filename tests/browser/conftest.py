"""A browser, and pages that are watched: nothing may go wrong unseen, or go out to another host."""

import pytest
from chromium import CHROMIUM, playwright


@pytest.fixture(scope="session")
def browser():
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
        )
        yield browser
        browser.close()


@pytest.fixture(params=["light", "dark"])
def theme(request):
    return request.param


LEFT = "AbortError: signal is aborted", "Connection errored out"  # what gradio says when it is


@pytest.fixture
def visit(browser, app_address):
    """Opens a page; afterwards nothing may have gone wrong unseen, or gone out to another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    problems = []

    def watch(page):
        page.on("dialog", lambda dialog: (problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: problems.append(f"error {error}"))
        page.on("console", lambda message: problems.append(message.text) if is_wrong(message) else None)
        page.on("request", lambda request: problems.append(request.url) if is_outside(request.url) else None)

    def is_wrong(message):
        """A page that is left in the middle of an answer is not."""
        return message.type == "error" and not any(word in message.text for word in LEFT)

    def is_outside(url):
        return not url.startswith((app_address, "data:", "blob:"))

    def open_page(path="", theme="light", width=1280):
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 900})
        watch(page)
        page.goto(f"{app_address}/{path}?__theme={theme}")
        return page

    yield open_page
    context.close()
    # An input that is refused is answered with status 422, which a browser reports as an error of its own.
    assert [problem for problem in problems if "422" not in problem] == []
