"""Tests of the picture of a forecast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from daskdl.errors import SettingsError
from nowcast.plot import forecast as module
from nowcast.plot import plot_forecast
from nowcast.plot.colours import COLOURS, MISSING
from tests.nowcast.plot.pictures import forecast, frames, pixels, share


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Figures in place of files."""
    figures: list[Figure] = []
    monkeypatch.setattr(module, "save", lambda figure, path: figures.append(figure))
    return figures


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(lambda item: hasattr(item, "get_text"))]


@pytest.mark.slow
def test_a_picture_is_written_that_shows_the_data(tmp_path: Path) -> None:
    for name, peak in (("a.png", 30.0), ("b.png", 3.0)):
        made = forecast(peak=peak)
        plot_forecast(made, tmp_path / name, observed=frames(1, 6), leads=(10, 60))
    strong, weak = pixels(tmp_path / "a.png"), pixels(tmp_path / "b.png")
    assert strong.shape == weak.shape
    height, width = strong.shape[:2]
    assert width > height > 600
    # The storm of more than 20 mm/h is in the one and only the legend's patch in the other.
    assert share(strong, COLOURS[6]) > share(weak, COLOURS[6]) + 0.001
    assert share(strong, MISSING) > 0.001
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]


@pytest.mark.slow
def test_rows_columns_and_times(drawn: list[Figure], tmp_path: Path) -> None:
    made = {"model": forecast(12), "persistence": forecast(12, speed=0)}
    plot_forecast(made, tmp_path / "x.png", observed=frames(1, 12))
    (figure,) = drawn
    assert len(figure.axes) == 3 * 6 + 1
    said = texts(figure)
    leads = [text for text in said if text.startswith("+")]
    assert leads == ["+20 min", "+40 min", "+60 min", "+80 min", "+100 min", "+120 min"]
    for text in ("22:10 UTC", "23:50 UTC", "observed", "model", "persistence"):
        assert text in said
    shown = figure.axes[6].images[0].get_array()
    np.testing.assert_array_equal(shown.filled(np.nan), made["model"]["rain_rate"][1])


def test_chosen_leads_and_title(drawn: list[Figure], tmp_path: Path) -> None:
    plot_forecast(forecast(simulated=1), tmp_path / "x.png", leads=(10, 60), title="Storms")
    (figure,) = drawn
    assert len(figure.axes) == 2 + 1
    assert figure.get_suptitle() == "Simulated data: Storms"
    with pytest.raises(SettingsError, match="among 10, 20, 30, 40, 50, 60 min, found 15"):
        plot_forecast(forecast(), tmp_path / "x.png", leads=(15,))
    with pytest.raises(SettingsError, match="found none"):
        plot_forecast(forecast(), tmp_path / "x.png", leads=())


@pytest.mark.slow
def test_what_was_not_observed_is_said(drawn: list[Figure], tmp_path: Path) -> None:
    plot_forecast(forecast(), tmp_path / "x.png", observed=frames(1, 5))
    plot_forecast(forecast(), tmp_path / "x.png", observed=frames(1, 6))
    assert texts(drawn[0]).count("not observed") == 1
    assert "not observed" not in texts(drawn[1])


@pytest.mark.slow
def test_long_names_are_broken_into_lines(drawn: list[Figure], tmp_path: Path) -> None:
    name = "a-very-long-name-of-a-forecast-of-the-twenty-sixth-of-august"
    plot_forecast({name: forecast(), "b": forecast()}, tmp_path / "a.png")
    shown = [text for text in texts(drawn[0]) if text.replace("\n", "") == name]
    assert len(shown) == 1
    assert max(map(len, shown[0].split("\n"))) < 30
