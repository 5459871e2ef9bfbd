"""What several tests share."""

import pytest


@pytest.fixture(scope="session")
def tiny_lab():
    """The bundled model, unadapted, in float32: comparisons to 1e-4 mean nothing in bfloat16."""
    import torch

    from magnet_lab import Magnet

    return Magnet.from_pretrained("tiny", adapter=None, device="cpu", dtype=torch.float32)
