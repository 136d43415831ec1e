"""Quantization: int8 layers for a trained model, with scales from samples.

:mod:`observed` measures the inputs of a model's layers and chooses their ranges, :mod:`graphs`
rewrites graphs, and :mod:`post_training` chooses the layers.
"""

from daskdl.quantization.post_training import quantize

__all__ = ["quantize"]
