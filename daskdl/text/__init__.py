"""Texts to vectors and classes, by encoders on disk (folders of Hugging Face)."""

from daskdl.text.encoder import TextEncoder, TextHead
from daskdl.text.loading import load
from daskdl.text.lora import load_adapter, lora, merged, save_adapter
from daskdl.text.model import TextModel
from daskdl.text.tokens import Tokens

__all__ = [
    "TextEncoder",
    "TextHead",
    "TextModel",
    "Tokens",
    "load",
    "load_adapter",
    "lora",
    "merged",
    "save_adapter",
]
