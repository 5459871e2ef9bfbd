"""Print the lowest versions that pyproject.toml allows, as constraints for pip: see `make compat`.

python tests/lowest_versions.py pyproject.toml [version of torch]
"""

import sys
import tomllib
from pathlib import Path


def lowest_versions(pyproject: str, torch: str | None = None) -> list[str]:
    """`name==version` for every requirement of the package and of its tests."""
    project = tomllib.loads(pyproject)["project"]
    requirements = project["dependencies"] + project["optional-dependencies"]["dev"]
    pins = dict(requirement.split(">=") for requirement in requirements)
    return [f"{name}=={version}" for name, version in (pins | ({"torch": torch} if torch else {})).items()]


if __name__ == "__main__":
    print("\n".join(lowest_versions(Path(sys.argv[1]).read_text(encoding="utf-8"), *sys.argv[2:])))
