"""Others' tools on our models: mteb, sentence-transformers and lm-eval, a module each. The extra `eval` has them."""

from collections.abc import Iterator
from contextlib import contextmanager


class PackageMissing(RuntimeError):
    """A module was imported whose tool is not installed; the message says how to get it."""


@contextmanager
def needs(module: str) -> Iterator[None]:
    """Around the imports of a tool: a missing tool is one sentence, a broken one keeps its own traceback.

    Raises:
        PackageMissing: if there is no module of that name.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        package = module.replace("_", "-")
        raise PackageMissing(f"this takes the package {package}: pip install 'magnet-lab[eval]'") from None
