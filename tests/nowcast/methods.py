"""The plain methods as functions from frames to frames, on 1 km and 5 min, for tests of scores."""

from __future__ import annotations

from nowcast.forecasters import Extrapolation, FieldsOnly, Persistence


def persistence(leads: int) -> FieldsOnly:
    """The last frame, so many times."""
    return FieldsOnly(Persistence(), leads, 1.0, 5.0)


def extrapolation(leads: int) -> FieldsOnly:
    """The last frame, moved on."""
    return FieldsOnly(Extrapolation(), leads, 1.0, 5.0)
