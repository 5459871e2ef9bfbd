"""The training objectives, one a file: pure functions of tensors, each beside its equation."""

from magnet_lab.objectives.mntp import mntp_loss
from magnet_lab.objectives.msg import msg_loss
from magnet_lab.objectives.mtp import mtp_loss
from magnet_lab.objectives.sscl import ProjectionHead, info_nce

__all__ = ["ProjectionHead", "info_nce", "mntp_loss", "msg_loss", "mtp_loss"]
