"""Read Caffe's networks (prototxt and caffemodel) as :class:`daskdl.nn.Graph`."""

from daskdl.interop.caffe.reader import load as load

__all__ = ["load"]
