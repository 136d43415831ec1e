"""Read weights that PyTorch saved, without torch and without running code from the file."""

from daskdl.interop.torch_weights.reader import read as read

__all__ = ["read"]
