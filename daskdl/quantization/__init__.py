"""Quantization: int8 layers for a trained model, with scales that samples decide.

:mod:`observed` has what passes of samples tell of a model's layers, :mod:`ranges` the numbers that
bytes stand for, and :mod:`post_training` the choice of layers.
"""

from daskdl.quantization.post_training import quantize

__all__ = ["quantize"]
