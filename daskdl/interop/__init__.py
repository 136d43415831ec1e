"""Models of other programs, in and out: a folder or a file for each format."""

from daskdl.interop.model_files import load as load

__all__ = ["load"]
