"""Windows for language models: stretches of tokens, and the token that follows each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from daskdl.data.lazy.joined import even_bounds
from daskdl.data.partition import Batch, Indices, Partition
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Excerpt
from daskdl.data.samples import SampleSet
from daskdl.errors import DataError, SettingsError


def language_windows(
    ids: Any, steps: int, *, stride: int | None = None, partitions: int = 1
) -> SampleSet:
    """Return samples of ``steps`` tokens ``x`` and, for each of them, the token after it, ``y``.

    The tokens of a partition are in memory once, however many windows overlap on them. Tokens
    behind the last whole window are left out.

    Parameters
    ----------
    ids : integer array (n,), or Ragged
        Anything that can be sliced and has a shape and a dtype will do: an array in memory, an
        array of a zarr store, which each worker reads itself, or a dask Array. The sequences of a
        Ragged are taken one after the other.
    steps : int
        Tokens of a window.
    stride : int, optional
        From the beginning of a window to the next beginning; ``steps`` by default, so that each
        token is predicted once.
    partitions : int
        Of nearly as many windows each.

    Returns
    -------
    SampleSet
        Of ``x`` and ``y``, int32 (steps,) each.

    Raises
    ------
    DataError
        When these are not ids, or are too few for one window.

    Examples
    --------
    >>> head = language_windows(np.arange(10), steps=4).head()
    >>> head["x"]
    array([[0, 1, 2, 3],
           [4, 5, 6, 7]], dtype=int32)
    >>> head["y"]
    array([[1, 2, 3, 4],
           [5, 6, 7, 8]], dtype=int32)
    """
    stride = steps if stride is None else stride
    if steps < 1 or stride < 1 or partitions < 1:
        raise SettingsError(
            "language_windows: expected steps, stride and partitions of at least 1, found "
            f"{steps!r}, {stride!r} and {partitions!r}"
        )
    tokens = ids.values if isinstance(ids, Ragged) else ids
    tokens = tokens if hasattr(tokens, "dtype") else np.asarray(tokens)
    if len(tokens.shape) != 1 or np.dtype(tokens.dtype).kind not in "iu":
        raise DataError(
            "language_windows: expected integer ids of shape (n,), found "
            f"{tokens.dtype} {tuple(tokens.shape)}"
        )
    count = (tokens.shape[0] - steps - 1) // stride + 1
    if count < 1:
        raise DataError(
            f"language_windows: expected at least {steps + 1} tokens for a window of {steps} and "
            f"the one after it, found {tokens.shape[0]}; give more tokens, or fewer steps"
        )
    bounds = even_bounds(count, min(partitions, count))
    whole = TokenWindowRecipe(tokens, 0, count, steps, stride)
    return SampleSet([whole.part(a, b) for a, b in pairwise(bounds)])


@dataclass(frozen=True)
class TokenWindowRecipe(Excerpt):
    """Windows ``start`` up to ``stop`` over tokens (n,) that are loaded once."""

    source: Any = field(repr=False)
    start: int
    stop: int
    steps: int
    stride: int

    @property
    def in_memory(self) -> bool:
        """Whether this carries the tokens themselves."""
        return isinstance(self.source, np.ndarray)

    @property
    def nbytes(self) -> int:
        """Bytes of the tokens."""
        return 4 * ((len(self) - 1) * self.stride + self.steps + 1)

    def part(self, start: int, stop: int) -> Self:
        """Return the recipe of the windows from ``start`` up to ``stop``, with no other tokens."""
        part = super().part(start, stop)
        if not self.in_memory:
            return part
        return replace(part, source=part.tokens(), start=0, stop=len(part))

    def tokens(self) -> Any:
        """Return the tokens of these windows, still in the source."""
        return self.source[
            self.start * self.stride : (self.stop - 1) * self.stride + self.steps + 1
        ]

    def load(self) -> TokenWindows:
        """Read the tokens."""
        tokens = self.tokens()
        if hasattr(tokens, "compute"):
            # Inside a task: another task for it would wait for this worker's own thread.
            import dask

            tokens = tokens.compute(scheduler=dask.get)
        return TokenWindows(np.ascontiguousarray(tokens, np.int32), self.steps, self.stride)


@dataclass(frozen=True)
class TokenWindows(Partition):
    """A partition of windows over tokens int32 (n,), which are in memory once."""

    tokens: NDArray[np.int32] = field(repr=False)
    steps: int
    stride: int

    @property
    def nbytes(self) -> int:
        """Bytes of the tokens."""
        return self.tokens.nbytes

    def __len__(self) -> int:
        return (len(self.tokens) - self.steps - 1) // self.stride + 1

    def take(self, indices: Indices) -> Batch:
        """Return ``x`` and ``y``, int32 (N, steps)."""
        at = np.asarray(indices)[:, None] * self.stride + np.arange(self.steps + 1)
        window = self.tokens[at]
        return {"x": window[:, :-1], "y": window[:, 1:]}
