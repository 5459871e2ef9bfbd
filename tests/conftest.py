"""What several tests share."""

import hypothesis
import pytest

# How long an example takes says nothing on a machine that others share.
hypothesis.settings.register_profile("shared machine", deadline=None)
hypothesis.settings.load_profile("shared machine")


@pytest.fixture(scope="session")
def tiny_lab():
    """The bundled model, unadapted, in float32: comparisons to 1e-4 mean nothing in bfloat16."""
    import torch

    from magnet_lab import Magnet

    return Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.float32)


@pytest.fixture(scope="session")
def app_address(tmp_path_factory):
    """Where the app is served on loopback, around the bundled model, for as long as the tests run."""
    import os
    import socket

    from magnet_lab.app.build import build, launch

    os.environ["MAGNET_LAB_RATINGS"] = str(tmp_path_factory.mktemp("ratings"))  # not the user's own
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    demo = build("tiny")
    launch(demo, port=port, block=False)
    yield f"http://127.0.0.1:{port}"
    demo.close()
