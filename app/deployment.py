"""Where and for whom the app is served, as the environment says:

| variable | what it is |
| --- | --- |
| `MODEL`, `HOST`, `PORT` | as `python -m magnet_lab.app` reads them |
| `MAGNET_LAB_MODELS` | more models to choose from on the pages, "tiny, small" |
| `MAGNET_LAB_USERS` | who may come in: "anna:secret, ben:word", or a file with a line for each; empty for all |
| `MAGNET_LAB_ROOT_PATH` | the path before the app's own behind a reverse proxy that takes it off, "/lab" |
| `MAGNET_LAB_MCP` | 1: serve the API to assistants too (wants `pip install 'magnet-lab[mcp]'`) |
| `MAGNET_LAB_PASSWORD`, `MAGNET_LAB_RATINGS` | of the page Judge |
| `MAGNET_LAB_LIMIT_…` | any number of `limits.py` |
"""

import hmac
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

MODELS, USERS, ROOT_PATH, MCP = "MAGNET_LAB_MODELS", "MAGNET_LAB_USERS", "MAGNET_LAB_ROOT_PATH", "MAGNET_LAB_MCP"


def models(own: str) -> list[str]:
    """The models to choose from: the one that the app was started with, then those of the environment."""
    named = [name.strip() for name in os.environ.get(MODELS, "").split(",")]
    return list(dict.fromkeys([own, *filter(None, named)]))


def root_path() -> str | None:
    """The path before the app's own, as it begins with a slash and ends with none; None if there is no proxy."""
    given = os.environ.get(ROOT_PATH, "").strip("/ ")
    if given.startswith(("http:", "https:")):
        return given
    return f"/{given}" if given else None


def users() -> dict[str, str]:
    """Names and passwords of those who may come in; empty where everybody may.

    Raises:
        SystemExit: with a sentence, if they cannot be read.
    """
    given = os.environ.get(USERS, "").strip()
    if not given:
        return {}
    lines = given.split(",")
    if ":" not in given or Path(given).is_file():
        try:
            lines = Path(given).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as problem:
            raise SystemExit(
                f"{USERS} names a file that cannot be read ({problem}): mend the path, or give name:password itself."
            ) from problem
    found = {}
    for number, line in enumerate((line.strip() for line in lines), start=1):
        if not line or line.startswith("#"):
            continue
        name, colon, password = (part.strip() for part in line.partition(":"))
        if not (name and colon and password):  # the line itself may be a password, and is not repeated
            raise SystemExit(f"{USERS}: entry {number} is not of the form name:password; mend it.")
        found[name] = password
    if not found:
        raise SystemExit(f"{USERS} is set and names nobody: add a line name:password, or unset it to let everybody in.")
    return found


def auth() -> Callable[[str, str], bool] | None:
    """A check of name and password; None where everybody may come in."""
    allowed = users()
    if not allowed:
        return None

    def may_come_in(name: str, password: str) -> bool:
        # Compared in full whether the name is known or not, so that the time taken tells neither.
        right = allowed.get(name, "")
        same = hmac.compare_digest(password.encode("utf-8", "replace"), right.encode("utf-8", "replace"))
        return same and name in allowed

    return may_come_in


def has_mcp() -> bool:
    """Whether the API is served to assistants by the Model Context Protocol.

    Raises:
        SystemExit: with a sentence, if that is wanted and what it needs is not installed.
    """
    if os.environ.get(MCP, "").lower() in ("", "0", "no", "false"):
        return False
    if importlib.util.find_spec("mcp") is None:
        raise SystemExit(f"{MCP} is set, but the package mcp is not installed: pip install 'magnet-lab[mcp]'.")
    return True
