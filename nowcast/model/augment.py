"""Augmentation: windows of rain mirrored, turned and run backwards."""

from __future__ import annotations

from typing import Any

import numpy as np


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
