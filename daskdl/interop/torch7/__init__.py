"""Read Torch7's files (.t7) as plain data, and its modules as :class:`daskdl.nn.Graph`."""

from daskdl.interop.torch7.modules import load as load
from daskdl.interop.torch7.reader import read as read

__all__ = ["load", "read"]
