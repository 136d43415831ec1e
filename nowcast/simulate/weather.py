"""Simulated weather: storms that are born, grow and decay while a sheared flow carries them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

#: Seconds between two steps along a storm's path.
PATH_STEP = 300.0


@dataclass(frozen=True)
class Weather:
    """Rain over a day around a radar at (0, 0), given by a seed.

    The flow blows from the west-south-west at 8 to 16 m/s, faster in the north than in the south,
    and turns in the course of the day, so that what persists is soon wrong and what is carried on
    along the flow stays right until a storm grows or fades. A storm is a convective core in a
    shield of weaker rain; both grow and fade along half a sine.

    Parameters
    ----------
    seed : int
    hours : float
        Length of the simulation.
    storms : int
        In 24 hours, within 250 km of the radar.
    """

    seed: int = 0
    hours: float = 24.0
    storms: int = 240

    def wind(self, time: float | Array, y: Array) -> tuple[Array, Array]:
        """Return the flow (u, v) in m/s at ``time`` seconds and ``y`` metres north of the radar."""
        speed = 12 + 3 * np.sin(2 * np.pi * np.asarray(time) / 61_000) + y * 2.5e-5
        heading = 0.35 + 0.45 * np.sin(2 * np.pi * np.asarray(time) / 86_400)
        return speed * np.cos(heading), speed * np.sin(heading) + 0 * y

    @cached_property
    def _storms(self) -> dict[str, Array]:
        rng = np.random.default_rng((self.seed, 1))
        count = round(self.storms * (self.hours + 3) / 24)
        lives = {
            "birth": rng.uniform(-3 * 3600, self.hours * 3600, count),
            "life": rng.uniform(2400, 9000, count),
            "peak": rng.lognormal(np.log(18), 0.6, count).clip(4, 80),
            "core": rng.uniform(3e3, 8e3, count),
            "shield": rng.uniform(10e3, 24e3, count),
            "drizzle": rng.uniform(0.6, 3.0, count),
            "stretch": rng.uniform(0.55, 1.0, count),
            "tilt": rng.uniform(0, np.pi, count),
        }
        steps = int(lives["life"].max() // PATH_STEP) + 2
        x, y = (rng.uniform(-250e3, 250e3, count) for _ in range(2))
        paths = np.empty((steps, 2, count))
        for step in range(steps):
            paths[step] = x, y
            u, v = self.wind(lives["birth"] + step * PATH_STEP, y)
            x, y = x + u * PATH_STEP, y + v * PATH_STEP
        return lives | {"paths": paths}

    @cached_property
    def _texture(self) -> tuple[Array, Array]:
        rng = np.random.default_rng((self.seed, 2))
        lengths = rng.uniform(6e3, 30e3, 10)
        angles = rng.uniform(0, 2 * np.pi, 10)
        waves = 2 * np.pi / lengths * np.array([np.cos(angles), np.sin(angles)])
        return waves, rng.uniform(0, 2 * np.pi, 10)

    @cached_property
    def _drift(self) -> Array:
        """How far the texture has been carried, (minutes, 2) in metres."""
        times = np.arange(0, self.hours * 3600 + 61, 60.0)
        u, v = self.wind(times, np.zeros_like(times))
        return np.cumsum(np.stack([u, v], 1) * 60, axis=0)

    def positions(self, time: float) -> tuple[Array, Array, Array]:
        """Return x and y in metres and rain rate at the centre, mm h-1, of the storms alive."""
        storms = self._storms
        age = time - storms["birth"]
        alive = np.flatnonzero((age > 0) & (age < storms["life"]))
        whole, part = np.divmod(age[alive] / PATH_STEP, 1)
        paths, whole = storms["paths"], whole.astype(int)
        x, y = (
            (1 - part) * paths[whole, axis, alive] + part * paths[whole + 1, axis, alive]
            for axis in (0, 1)
        )
        return x, y, storms["peak"][alive] * np.sin(np.pi * age[alive] / storms["life"][alive])

    def rain(self, time: float, x: Array, y: Array) -> NDArray[np.float32]:
        """Return the rain rate at the ground.

        Parameters
        ----------
        time : float
            Seconds from the start.
        x, y : arrays of one shape
            Metres east and north of the radar.

        Returns
        -------
        array of that shape
            mm h-1.
        """
        storms = self._storms
        age = time - storms["birth"]
        alive = np.flatnonzero((age > 0) & (age < storms["life"]))
        x, y = x.astype(np.float32), y.astype(np.float32)
        total = np.zeros_like(x)
        for k, cx, cy in zip(alive, *self.positions(time)[:2], strict=True):
            phase = np.float32(np.sin(np.pi * age[k] / storms["life"][k]))
            reach = 3 * storms["shield"][k]
            near = (np.abs(x - cx) < reach) & (np.abs(y - cy) < reach)
            if not near.any():
                continue
            dx, dy = x[near] - np.float32(cx), y[near] - np.float32(cy)
            cos, sin = np.float32(np.cos(storms["tilt"][k])), np.float32(np.sin(storms["tilt"][k]))
            along, across = cos * dx + sin * dy, (cos * dy - sin * dx) / storms["stretch"][k]
            q = (along * along + across * across).astype(np.float32)
            core = storms["peak"][k] * np.exp(q / np.float32(-2 * storms["core"][k] ** 2))
            shield = storms["drizzle"][k] * np.exp(q / np.float32(-2 * storms["shield"][k] ** 2))
            total[near] += phase * (core + shield).astype(np.float32)
        wet = total > 0.02
        waves, phases = self._texture
        drift = self._drift[round(time / 60)]
        px, py = x[wet] - np.float32(drift[0]), y[wet] - np.float32(drift[1])
        ripple = np.zeros_like(px)
        for kx, ky, phase in zip(*waves.astype(np.float32), phases.astype(np.float32), strict=True):
            ripple += np.cos(kx * px + ky * py + phase)
        total[wet] *= np.exp(np.float32(0.22) * ripple)
        return total
