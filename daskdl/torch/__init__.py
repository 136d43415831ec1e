"""PyTorch modules trained by daskdl as they are (extra ``torch``), without a copy of weights.

:class:`TorchModule` wraps an unchanged ``torch.nn.Module``; :class:`TorchLoss` any function of
tensors as a loss. Nothing else of daskdl imports this room before it is used.
"""

from daskdl.torch.loss import TorchLoss
from daskdl.torch.module import TorchModule

__all__ = ["TorchLoss", "TorchModule"]
