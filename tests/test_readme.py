"""No figure in the README is entered by hand: each table of measurements is what its JSON file says."""

import json
import re
from pathlib import Path

from magnet_lab.bench import adapters
from magnet_lab.evaluation import overview, reproduce
from magnet_lab.evaluation.experiment import SHIPPED, Result

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"<!-- measured: (.+?) -->\n(.*?)\n<!-- end -->", re.DOTALL)


def rendered(path: Path) -> str:
    if path.name == "adapters.json":
        return adapters.table(json.loads(path.read_text(encoding="utf-8"))["figures"])
    result = Result.load(path)
    return reproduce.table(reproduce.experiments()[result.id], result)


def test_tables_of_the_readme_are_their_files():
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert blocks
    known = reproduce.experiments()
    for name, text in blocks:
        if name == "claims":
            assert text.strip() == overview.table(known, overview.measured(known, SHIPPED)), "copy the table of claims"
        else:
            assert text.strip() == rendered(SHIPPED / name), f"copy the table of {name} into the README"


def test_what_is_shipped_can_be_read():
    for path in SHIPPED.glob("*/*.json"):
        assert rendered(path)
