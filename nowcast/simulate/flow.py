"""The flow that carries the weather: a steering wind with shear that turns during the day.

The wind is linear in space, u(x, t) = s(t) + A x with A free of divergence. The paths of air in
such a flow are an affine map in closed form. So everything in it (storms and the texture of their
rain) is moved, turned and sheared exactly, from any time to any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Gauss-Legendre nodes for the displacement: exact to rounding over the hours that storms live, in
# which the steering wind changes little.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


@dataclass(frozen=True)
class Flow:
    """A wind field in metres per second, x to the east and y to the north."""

    steering: tuple[float, float]  #: Mean wind (u, v) at the origin.
    swing: tuple[float, float]  #: Amplitude of its variation, which turns once in ``period``.
    #: Seconds and radians.
    period: float
    phase: float
    #: A = (du/dx, du/dy), (dv/dx, dv/dy) in 1/s, without divergence: dv/dy = -du/dx.
    gradient: tuple[tuple[float, float], tuple[float, float]]

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Flow:
        """Draw a day's flow: 9 to 14 m/s, some 3 m/s more or less at 100 km to its sides."""
        heading = rng.uniform(0.0, 2.0 * np.pi)
        # Columns: along the flow, and to the left of it.
        frame = np.array(
            [[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]], np.float64
        )
        shear = rng.choice([-1.0, 1.0]) * rng.uniform(2e-5, 4e-5)
        curving, stretching = rng.uniform(-8e-6, 8e-6, 2)
        along = np.array([[stretching, shear], [curving, -stretching]])
        gradient = frame @ along @ frame.T
        steering = frame @ [rng.uniform(9.0, 14.0), 0.0]
        swing = frame @ [rng.uniform(-2.0, 2.0), rng.choice([-1.0, 1.0]) * rng.uniform(2.0, 4.0)]
        return cls(
            steering=(float(steering[0]), float(steering[1])),
            swing=(float(swing[0]), float(swing[1])),
            period=float(rng.uniform(10.0, 16.0) * 3600.0),
            phase=float(rng.uniform(0.0, 2.0 * np.pi)),
            gradient=(
                (float(gradient[0, 0]), float(gradient[0, 1])),
                (float(gradient[1, 0]), -float(gradient[0, 0])),
            ),
        )

    def wind(self, time: float, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
        """Return the wind (u, v) in m/s at ``time`` seconds and at metres east and north."""
        u, v = self._steering(np.asarray(time, np.float64))
        (ux, uy), (vx, vy) = self.gradient
        x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
        return u + ux * x + uy * y, v + vx * x + vy * y

    def carry(self, start: ArrayLike, end: float) -> tuple[Array, Array]:
        """Return the path of air: from X at ``start`` to ``matrix @ X + shift`` at ``end`` (s).

        ``start`` is (...), and ``end`` may be the earlier one. The matrix (..., 2, 2), of
        determinant 1, says how a pattern is turned and sheared; the shift (..., 2) is in metres.
        """
        start = np.asarray(start, np.float64)
        half = 0.5 * (end - start)[..., None]
        times = end + half * (_NODES - 1.0)
        blown = np.einsum(
            "...nij,...nj->...ni", self._propagate(end - times), self._steering(times)
        )
        shift = half * np.einsum("n,...ni->...i", _WEIGHTS, blown)
        return self._propagate(end - start), shift

    def _steering(self, time: Array) -> Array:
        """Return the wind at the origin, (..., 2)."""
        turn = np.sin(2.0 * np.pi * time / self.period + self.phase)
        return np.array(self.steering) + turn[..., None] * np.array(self.swing)

    def _propagate(self, lag: Array) -> Array:
        """Return exp(A lag), (..., 2, 2): A is free of divergence, hence A A = -det(A) 1."""
        a = np.array(self.gradient)
        rate = np.emath.sqrt(a[0, 0] ** 2 + a[0, 1] * a[1, 0])
        even = np.real(np.cosh(rate * lag))
        odd = np.real(np.sinh(rate * lag) / rate) if abs(rate) > 1e-12 else lag
        return even[..., None, None] * np.eye(2) + odd[..., None, None] * a
