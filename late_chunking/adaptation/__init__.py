"""Training an encoder for late chunking, on documents and queries of one's own."""

from late_chunking.adaptation.plan import Training
from late_chunking.adaptation.trainer import Adapted, Trainer

__all__ = ["Adapted", "Trainer", "Training"]
