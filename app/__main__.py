"""`python -m magnet_lab.app`: serve the app; what can be chosen in the environment stands in `deployment.py`."""

import os

from .build import serve

if __name__ == "__main__":
    serve(
        os.environ.get("MODEL") or "small", os.environ.get("HOST") or "127.0.0.1", int(os.environ.get("PORT") or 7860)
    )
