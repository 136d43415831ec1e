"""Caffe's networks (prototxt and caffemodel) read as :class:`daskdl.nn.Graph`."""

from daskdl.interop.caffe.reader import load as load

__all__ = ["load"]
