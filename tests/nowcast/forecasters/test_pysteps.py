"""Tests of the methods of pysteps."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import MissingExtraError, SettingsError
from nowcast.forecasters import Extrapolation, Pysteps
from nowcast.forecasters import pysteps as module
from tests.nowcast.fields import translation

needs_pysteps = pytest.mark.skipif(not module.pysteps_installed(), reason="needs pysteps")
GRID = {"spacing_km": 1.0, "step_minutes": 5.0}


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "pysteps_installed", lambda: False)
    with pytest.raises(MissingExtraError, match=r"pysteps:sprog .* 'daskdl\[pysteps\]'"):
        Pysteps("sprog")


def test_says_what_there_is() -> None:
    with pytest.raises(SettingsError, match=r"one of extrapolation, sprog, .* found 'magic'"):
        Pysteps("magic")


@needs_pysteps
def test_agrees_with_our_extrapolation() -> None:
    frames = translation(3, 1.6, -2.3)
    theirs, ours = (m.forecast(frames, 6, **GRID).rain[-1] for m in (Pysteps(), Extrapolation()))
    both = np.isfinite(theirs) & np.isfinite(ours)
    assert both.mean() > 0.7
    assert np.corrcoef(theirs[both], ours[both])[0, 1] > 0.95


@needs_pysteps
@pytest.mark.parametrize(
    "name", [*module.NAMES[:-1], pytest.param("linda", marks=pytest.mark.long)]
)
def test_every_method_gives_rain_and_is_silent(name: str, capfd) -> None:
    frames = translation(4, 1.0, -2.0, size=96)
    made = Pysteps(name).forecast(frames, 3, members=2, seed=1, **GRID)
    assert made.rain.shape == (3, 96, 96)
    assert made.rain.dtype == np.float32
    known = np.isfinite(made.rain)
    assert 0.7 < known.mean() < 1
    assert (made.rain[known] >= 0).all()
    near = np.corrcoef(made.rain[0][known[0]], frames[-1][known[0]])[0, 1]
    assert near > 0.5
    assert (made.members is not None) == (name in ("steps", "linda"))
    if made.members is not None:
        assert made.members.shape == (2, 3, 96, 96)
        assert not np.array_equal(made.members[0], made.members[1], equal_nan=True)
    assert capfd.readouterr() == ("", "")
