"""Read ONNX files as :class:`daskdl.nn.Graph`, and write models as ONNX."""

from daskdl.interop.onnx.reader import load as load
from daskdl.interop.onnx.writer import save as save
from daskdl.interop.onnx.writer import to_proto as to_proto

__all__ = ["load", "save", "to_proto"]
