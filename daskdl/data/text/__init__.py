"""Text: tokens, vocabularies, sequences as arrays, word vectors, windows for language models."""

from daskdl.data.text.padding import Encode, buckets, lengths_of, pad
from daskdl.data.text.tokens import Tokenizer
from daskdl.data.text.vectors import Vectors, read_vectors
from daskdl.data.text.vocabulary import PADDING, UNKNOWN, Vocabulary
from daskdl.data.text.windows import language_windows

__all__ = [
    "PADDING",
    "UNKNOWN",
    "Encode",
    "Tokenizer",
    "Vectors",
    "Vocabulary",
    "buckets",
    "language_windows",
    "lengths_of",
    "pad",
    "read_vectors",
]
