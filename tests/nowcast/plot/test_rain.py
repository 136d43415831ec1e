"""Tests of the picture of one field."""

from __future__ import annotations

from pathlib import Path

import pytest

from daskdl.errors import DataError
from nowcast.plot import plot_rain, rain
from nowcast.plot.colours import COLOURS
from tests.nowcast.plot.pictures import frames, pixels, share


def test_a_map_is_written(tmp_path: Path) -> None:
    plot_rain(frames(0, 0)[0], tmp_path / "rain.png")
    plot_rain(frames(0, 0)[0] * 0, tmp_path / "dry.png")
    wet, dry = pixels(tmp_path / "rain.png"), pixels(tmp_path / "dry.png")
    assert wet.shape == dry.shape
    assert share(wet, COLOURS[5]) > share(dry, COLOURS[5]) + 0.005


def test_title_has_the_time_and_calls_simulated_data_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(
        rain, "save", lambda figure, path: titles.append(figure.axes[0].get_title())
    )
    frame = frames(0, 0)[0]
    plot_rain(frame, tmp_path / "x.png")
    plot_rain(frame.transpose("x", "y").assign_attrs(simulated=1), tmp_path / "x.png")
    plot_rain(frame.drop_vars("time"), tmp_path / "x.png", title="Hail")
    assert titles == [
        "Rain rate at 2021-07-14 21:50 UTC",
        "Simulated data: rain rate at 2021-07-14 21:50 UTC",
        "Hail",
    ]


def test_several_fields_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"expected rain \(y, x\), found dimensions \('time', "):
        plot_rain(frames(0, 2), tmp_path / "x.png")
    assert not list(tmp_path.iterdir())
