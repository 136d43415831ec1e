"""Read TensorFlow's frozen graphs (.pb) as :class:`daskdl.nn.Graph`."""

from daskdl.interop.tensorflow.reader import load as load

__all__ = ["load"]
