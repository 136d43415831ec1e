"""ONNX files read as :class:`daskdl.nn.Graph`, and models written as ONNX."""

from daskdl.interop.onnx.reader import load as load

__all__ = ["load"]
