"""Tests of figures without a display."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from daskdl.errors import MissingExtraError
from nowcast.plot.figure import new_figure, save


def test_a_figure_is_written_whole_and_the_same_each_time(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        figure = new_figure(2.0, 1.0)
        figure.subplots().plot([0, 1])
        save(figure, tmp_path / "new" / name, dpi=50)
    first, second = ((tmp_path / "new" / name).read_bytes() for name in ("a.png", "b.png"))
    assert first[:8] == b"\x89PNG\r\n\x1a\n"
    assert first == second


def test_what_was_there_stays_when_drawing_fails(tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    path.write_bytes(b"older")
    figure = new_figure(1.0, 1.0)
    figure.suptitle("$\\nonsense$")
    with pytest.raises(ValueError, match="nonsense"):
        save(figure, path)
    assert path.read_bytes() == b"older"
    assert list(tmp_path.iterdir()) == [path]


def test_no_state_of_pyplot_is_touched() -> None:
    new_figure(1.0, 1.0)
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_missing_matplotlib_is_said_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskdl\[nowcast\]'"):
        new_figure(1.0, 1.0)
