"""Weights that PyTorch saved, read without torch and without running anything of the file."""

from daskdl.interop.torch_weights.reader import read as read

__all__ = ["read"]
