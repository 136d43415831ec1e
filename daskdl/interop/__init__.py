"""Models of other programs, in and out: a folder or a file for each format."""

from daskdl.interop.model_files import load as load
from daskdl.interop.torch_weights import read as read

__all__ = ["load", "read"]
