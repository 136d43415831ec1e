"""Train unchanged PyTorch modules by daskdl, without a copy of weights (extra ``torch``).

:class:`TorchModule` wraps a ``torch.nn.Module``; :class:`TorchLoss` wraps any function of
tensors as a loss. Other modules of daskdl import this package only on use.
"""

from daskdl.torch.loss import TorchLoss
from daskdl.torch.module import TorchModule

__all__ = ["TorchLoss", "TorchModule"]
