"""The models of a menu: each visitor is answered by the one that they chose, where pages ask for *the* model.

A choice is made by a link, `infill?model=small`, and kept in a cookie for the pages that follow. Gradio sends both
along with every event of a page. A model is loaded when somebody first asks for it.
"""

import html
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gradio.context import LocalContext

from .loading import Loading

if TYPE_CHECKING:
    from magnet_lab.model import Magnet

QUERY, COOKIE = "model", "magnet-lab-model"

# Run when a page opens: a choice that the address makes is kept for the pages that follow.
KEEP = f"""
() => {{
  const chosen = new URLSearchParams(window.location.search).get('{QUERY}');
  if (chosen) document.cookie = '{COOKIE}=' + encodeURIComponent(chosen) + '; path=/; SameSite=Lax';
}}
"""


class Menu:
    """Several models behind what a page asks of one, `Loading`; outside of a visitor's event it is the first of them.

    Args:
        names: the models, the usual one first.
    """

    def __init__(self, names: Sequence[str]):
        self.names = list(names)
        self._loadings: dict[str, Loading] = {}
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to load the usual model."""
        self._loading(self.names[0])

    @property
    def name(self) -> str:
        """The model that the visitor chose."""
        return chosen(self.names)

    def libraries(self) -> None:
        self._chosen().libraries()

    def lab(self) -> "Magnet":
        return self._chosen().lab()

    @property
    def has_libraries(self) -> bool:
        return self._chosen().has_libraries

    @property
    def lab_now(self) -> "Magnet | None":
        return self._chosen().lab_now

    def tokenizer(self):
        return self._chosen().tokenizer()

    def notes(self) -> Iterator[str]:
        return self._chosen().notes()

    def links(self) -> str:
        """The menu in HTML, a link for each model; nothing where there is no choice."""
        if len(self.names) == 1:
            return ""
        own = self.name
        links = (
            f'<a href="?{QUERY}={urllib.parse.quote(name)}"{" aria-current=true" if name == own else ""}>'
            f"{html.escape(name)}</a>"
            for name in self.names
        )
        return f'<nav class="models" aria-label="Model">Model: {" · ".join(links)}</nav>'

    def _chosen(self) -> Loading:
        return self._loading(self.name)

    def _loading(self, name: str) -> Loading:
        with self._lock:
            if name not in self._loadings:
                self._loadings[name] = Loading(name)
                # Two threads that import the libraries at once can each get half of them.
                first = self._loadings[self.names[0]]
                self._loadings[name].start(after=None if name == self.names[0] else first)
            return self._loadings[name]


def chosen(names: Sequence[str]) -> str:
    """Which of the models the visitor chose whose event is being answered, by address or by cookie; else the first."""
    request = LocalContext.request.get(None)
    if request is None or not hasattr(request, "query_params"):
        return names[0]
    by_cookie = urllib.parse.unquote(request.cookies.get(COOKIE, ""))
    wanted = (request.query_params.get(QUERY), by_cookie)
    return next((name for name in wanted if name in names), names[0])
