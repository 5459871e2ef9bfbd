"""A Space: the app, from the wheel of magnet_lab that lies beside this file."""

import os
import sys
import tempfile
import zipfile
from pathlib import Path

STORAGE = Path("/data")  # where a Space has any that outlives a restart


def unpack(folder: Path) -> None:
    """Make the newest wheel of a folder importable; without one, magnet_lab has to be installed."""
    wheels = sorted(folder.glob("magnet_lab-*.whl"), key=lambda path: path.stat().st_mtime)
    if wheels:
        unpacked = tempfile.mkdtemp(prefix="magnet_lab-")
        zipfile.ZipFile(wheels[-1]).extractall(unpacked)
        sys.path.insert(0, unpacked)


if __name__ == "__main__":
    unpack(Path(__file__).resolve().parent)
    if STORAGE.is_dir() and os.access(STORAGE, os.W_OK):
        os.environ.setdefault("MAGNET_LAB_RATINGS", str(STORAGE / "ratings"))
        os.environ.setdefault("MAGNET_LAB_CACHE", str(STORAGE / "cache"))
    from magnet_lab.app.build import serve

    serve(os.environ.get("MODEL") or "small", "0.0.0.0", int(os.environ.get("GRADIO_SERVER_PORT") or 7860))
