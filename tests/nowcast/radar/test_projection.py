"""Projections in kilometres."""

from __future__ import annotations

import pytest

from nowcast.radar.projection import in_metres


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+proj=stere +a=6378.137 +b=6356.752", "+proj=stere +a=6378137.000 +b=6356752.000"),
        ("+proj=stere +R=6370.04 +units=km", "+proj=stere +R=6370040.000"),
        ("+proj=laea +lat_0=55 +x_0=1950000 +ellps=WGS84", None),
        ("+proj=stere +a=6378137 +units=m", "+proj=stere +a=6378137.000"),
    ],
)  # fmt: skip
def test_lengths_are_metres(text, expected):
    assert in_metres(text) == (expected or text) + " +units=m"
