"""Rain as a network reads it: rates as numbers, windows mirrored and turned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


@dataclass(frozen=True)
class RainScale:
    """A logarithmic scale: 0 mm h-1 is 0 and ``full`` is 1.

    value = ln(1 + rate / floor) / ln(1 + full / floor): linear below ``floor``, where radars see
    noise, logarithmic above it, as reflectivity is.

    Examples
    --------
    >>> scale = RainScale()
    >>> scale.to_rain(scale.to_network(np.array([0, 1, 50], "f4"))).round(3)
    array([ 0.,  1., 50.], dtype=float32)
    """

    #: In mm h-1.
    floor: float = 0.1
    full: float = 50.0

    def to_network(self, rain: Array) -> Array:
        """Scale rain rates in mm h-1; NaN stays NaN, and less than no rain is none."""
        values = np.log1p(np.maximum(rain, 0) * np.float32(1 / self.floor))
        values *= np.float32(1 / np.log1p(self.full / self.floor))
        return values

    def to_rain(self, values: Array) -> Array:
        """Return rain rates in mm h-1, between 0 and four times ``full``."""
        largest = np.log1p(4 * self.full / self.floor)
        rain = np.expm1(np.clip(values * np.log1p(self.full / self.floor), 0, largest))
        return (rain * self.floor).astype(np.float32)


class Symmetries:
    """Puts each window into one of the ways in which rain could as well have passed.

    Mirrored in x, in y, and about the diagonal if it is square: the few directions in which the
    storms of a short archive move are no rule. Run backwards in time: storms of an archive that
    ends while they grow would otherwise grow for ever.
    """

    def __call__(self, batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Return ``x`` and ``y``, (N, T, H, W, 1) each, every window changed in its own way."""
        n_in = batch["x"].shape[1]
        frames = np.concatenate([batch["x"], batch["y"]], axis=1)
        square = frames.shape[2] == frames.shape[3]
        result = np.empty_like(frames)
        for window, target, ways in zip(
            frames, result, rng.integers(0, 2, (len(frames), 4)), strict=True
        ):
            back, down, across = (slice(None, None, -1 if way else 1) for way in ways[:3])
            changed = window[back, down, across]
            target[...] = changed.swapaxes(1, 2) if square and ways[3] else changed
        return {"x": result[:, :n_in], "y": result[:, n_in:]}
