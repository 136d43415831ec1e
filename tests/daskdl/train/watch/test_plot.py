"""The panels of a history's picture, for few iterations, for many, and for none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from daskdl.train.engines.step import Record
from daskdl.train.watch.history import History
from daskdl.train.watch.plot import POINTS


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    import matplotlib.pyplot as plt

    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


def long(iterations: int, epochs: int = 0, **metrics: float) -> History:
    history = History()
    for i in range(iterations):
        history.add([Record(1 / (i + 1), 8, 0.1, 0.2, 0.3, 0.1, float(i))], 1.0)
    for epoch in range(epochs):
        row = {"epoch": epoch, "iteration": (epoch + 1) * iterations // epochs, "loss": 0.5}
        history.epochs.append({**row, "val_loss": 0.6, **metrics})
    return history


def labels(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.slow
def test_there_are_panels_for_loss_metrics_and_time(tmp_path: Path) -> None:
    loss, metrics, time = long(12, 3, auc=0.8, val_auc=0.9, val_f1=0.5).plot()
    assert labels(loss) == ["iteration", "epoch", "validation"]
    assert labels(metrics) == ["auc, training", "auc", "f1"]
    assert metrics.get_lines()[1].get_xydata().tolist() == [[4, 0.9], [8, 0.9], [12, 0.9]]
    assert labels(time) == ["data", "forward", "backward", "update", "wait"]
    low, high = time.get_ylim()
    assert low == 0
    assert high == pytest.approx(1.2)
    assert "12 iterations, 96 samples, 12 s, 8 samples/s" in loss.figure.get_suptitle()
    loss.figure.savefig(tmp_path / "history.png")
    assert (tmp_path / "history.png").stat().st_size > 10_000


def test_without_metrics_there_is_no_panel_for_them() -> None:
    assert [ax.get_ylabel() for ax in long(5, 1).plot()] == ["loss", "seconds of an iteration"]
    assert len(History().plot()) == 2


@pytest.mark.parametrize("iterations", [1, POINTS, POINTS + 1, 3 * POINTS + 7])
def test_of_many_iterations_means_are_drawn(iterations: int) -> None:
    _, time = long(iterations).plot()
    forward = time.collections[1].get_paths()[0].vertices  # from data's 0.1 to 0.3
    assert set(np.round(forward[:, 1], 9)) == {0.1, 0.3}
    assert len(forward) <= 4 * POINTS + 8
    assert forward[:, 0].min() > 0
    assert forward[:, 0].max() < iterations
