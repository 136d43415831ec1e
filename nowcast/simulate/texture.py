"""The fine structure of rain: spatially correlated noise, carried by the flow and renewed.

Two layers of noise overlap at any time, each carried from its own hour; one fades in while the
other fades out, with weights whose squares add up to one. So the moving pattern decorrelates within
most of an hour, and the shear never stretches it to threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcast.simulate.flow import Flow

# Cells of the periodic tile of noise, of one kilometre each.
TILE = 256
CELL = 1000.0
# Power spectrum k^-SLOPE between these wavelengths in metres.
SLOPE, SHORTEST, LONGEST = 3.4, 3e3, 60e3


@dataclass(frozen=True)
class Texture:
    """Noise of unit variance, correlated over some kilometres."""

    seed: int
    turnover: float = 2700.0  #: Seconds after which a layer has been replaced by the next.

    def sample(
        self, flow: Flow, time: float, x: NDArray[np.float32], y: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the noise at points, (n,) float32; x and y (n,) in metres."""
        from scipy.ndimage import map_coordinates

        layer = int(np.floor(time / self.turnover))
        part = 0.5 * np.pi * (time / self.turnover - layer)
        total = np.zeros(x.shape, np.float32)
        for number, weight in ((layer, np.cos(part)), (layer + 1, np.sin(part))):
            matrix, shift = flow.carry(time, number * self.turnover)
            (a, b), (c, d) = (matrix / CELL).astype(np.float32)
            # The tile repeats; taking whole ones off keeps float32 sharp.
            east, north = np.mod(shift / CELL, TILE).astype(np.float32)
            noise = map_coordinates(
                _tile(self.seed, number),
                (c * x + d * y + north, a * x + b * y + east),
                output=np.float32,
                order=1,
                mode="grid-wrap",
            )
            total += np.float32(weight) * noise
        return total


@lru_cache(maxsize=4)
def _tile(seed: int, layer: int) -> NDArray[np.float32]:
    """Return a periodic field of mean 0 and variance 1, (TILE, TILE) float32."""
    rng = np.random.default_rng((seed, 2, layer + 1000))
    wave = np.hypot(np.fft.fftfreq(TILE, CELL)[:, None], np.fft.rfftfreq(TILE, CELL)[None, :])
    inside = (wave > 1 / LONGEST) & (wave < 1 / SHORTEST)
    amplitude = np.where(inside, np.where(inside, wave, 1.0) ** (-SLOPE / 2), 0.0)
    spectrum = amplitude * np.fft.rfft2(rng.standard_normal((TILE, TILE)))
    field = np.fft.irfft2(spectrum, s=(TILE, TILE))
    return (field / field.std()).astype(np.float32)


Field = NDArray[np.float32]


@dataclass(frozen=True)
class Points:
    """Places (metres) that broadcast together; parts of a grid's axes in a window are fast."""

    x: Field
    y: Field

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape that x and y broadcast to."""
        return np.broadcast_shapes(self.x.shape, self.y.shape)

    def within(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[Any, Field, Field] | None:
        """Return index, x and y of the points in a rectangle, or None when there is none."""
        in_x = (self.x > low[0]) & (self.x < high[0])
        in_y = (self.y > low[1]) & (self.y < high[1])
        if in_x.ndim == 2 and in_x.shape[0] == 1 and in_y.ndim == 2 and in_y.shape[1] == 1:
            columns, rows = np.flatnonzero(in_x), np.flatnonzero(in_y)
            if not (columns.size and rows.size):
                return None
            across, down = slice(columns[0], columns[-1] + 1), slice(rows[0], rows[-1] + 1)
            return (down, across), self.x[:, across], self.y[down, :]
        inside = np.broadcast_to(in_x & in_y, self.shape)
        if not inside.any():
            return None
        x, y = np.broadcast_arrays(self.x, self.y)
        return inside, x[inside], y[inside]
