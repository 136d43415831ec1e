"""Scenes: a network over an array larger than memory, tile by tile, without seams."""

from daskdl.predict.scenes.scene import predict_scene

__all__ = ["predict_scene"]
