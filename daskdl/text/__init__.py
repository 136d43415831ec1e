"""Texts to vectors and classes, by encoders that people have on disk (Hugging Face folders)."""

from daskdl.text.encoder import TextEncoder, TextHead
from daskdl.text.model import TextModel, load

__all__ = ["TextEncoder", "TextHead", "TextModel", "load"]
