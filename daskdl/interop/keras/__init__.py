"""Read Keras models and weights (.keras, .h5) as :class:`daskdl.nn.Graph`, or into a model."""

from daskdl.interop.keras.layer_weights import load_weights as load_weights
from daskdl.interop.keras.reader import load as load
from daskdl.interop.keras.reader import read as read

__all__ = ["load", "load_weights", "read"]
