"""A tool that is not installed is one sentence; one that is there but broken keeps its own traceback."""

import importlib
import sys

import pytest

from magnet_lab.integrations import PackageMissing, needs

ADAPTERS = {
    "mteb": "mteb_encoder",
    "sentence_transformers": "sentence_transformers_folder",
    "lm_eval": "lm_eval_model",
}


class NotInstalled:
    """Answers Python's search for one module as if nobody had it."""

    def __init__(self, module: str):
        self.module = module

    def find_spec(self, name, path=None, target=None):
        if name == self.module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize("tool", ADAPTERS)
def test_a_missing_tool_is_named_with_the_command_that_installs_it(tool, monkeypatch):
    adapter = f"magnet_lab.integrations.{ADAPTERS[tool]}"
    for name in list(sys.modules):
        if name == adapter or name.partition(".")[0] == tool:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NotInstalled(tool), *sys.meta_path])
    with pytest.raises(PackageMissing) as caught:
        importlib.import_module(adapter)
    package = {"sentence_transformers": "sentence-transformers", "lm_eval": "lm-eval"}.get(tool, tool)
    assert str(caught.value) == f"this takes the package {package}: pip install 'magnet-lab[eval]'"


def test_what_a_tool_itself_lacks_is_not_hidden():
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), needs("mteb"):
        import no_such_module  # noqa: F401
