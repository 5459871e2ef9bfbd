"""The course out of an installed package, into a folder where a student can write."""

import shutil
from pathlib import Path

import magnet_lab


def folder() -> Path:
    """Where the notebooks are: in the installed package, or at the top of a clone."""
    package = Path(magnet_lab.__file__).parent
    installed = package / "notebooks"
    return installed if installed.is_dir() else package.parent / "notebooks"


def course(target: Path) -> tuple[int, int]:
    """Copy the notebooks and their solutions; what is there already and differs is left as it is.

    Returns:
        How many were written, and how many were left because they differ.

    Raises:
        OSError: if the folder cannot be written to.
    """
    written = kept = 0
    source = folder()
    for path in [*sorted(source.glob("*.ipynb")), *sorted(source.glob("solutions/*.ipynb"))]:
        copied = target / path.relative_to(source)
        if copied.is_file():
            kept += copied.read_bytes() != path.read_bytes()
            continue
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
        written += 1
    return written, kept
