from __future__ import annotations

import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.picture import check_format, draw, write
from daskdl.scaling.split import PARTS
from daskdl.scaling.sweep import planned, sweep
from tests.daskdl.scaling.tiny import run


def test_bars_are_as_high_as_iterations_are_long(tmp_path) -> None:
    plan = planned([1, 2, 4], 8, 8)
    rows = list(sweep(lambda n, samples: run(n, samples, 0.1 * samples / n), plan))
    figure = draw(rows, "tiny")
    left, right = figure.axes
    tops = [patch.get_y() + patch.get_height() for patch in left.patches]
    assert max(tops) == pytest.approx(800)
    assert len(left.patches) == 3 * len(PARTS)
    weak, strong, *_ = right.get_lines()
    assert [*weak.get_xdata()] == [1, 2, 4]
    assert [*strong.get_ydata()] == pytest.approx([100, 100, 100])
    path = tmp_path / "scaling.png"
    write(figure, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in tmp_path.iterdir()] == ["scaling.png"]


def test_a_format_that_cannot_be_written_is_told_before(tmp_path) -> None:
    check_format(tmp_path / "scaling.svg")
    with pytest.raises(SettingsError, match=r"ends in one of .*png.*, found '.*scaling.doc'"):
        check_format(tmp_path / "scaling.doc")
