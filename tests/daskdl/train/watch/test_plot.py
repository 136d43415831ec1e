"""Pictures of a history, and event files as TensorBoard reads them."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event

from daskdl import SampleSet, Trainer, nn
from daskdl.errors import MissingExtraError, SettingsError
from daskdl.optim import SGD
from daskdl.train import LivePlot, TensorBoard
from daskdl.train.engines.step import PHASES, Record
from daskdl.train.watch.history import History
from daskdl.train.watch.plot import POINTS
from tests.daskdl.train.runs import Do, On, failing, fit, problem


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
def test_there_are_panels_for_loss_metrics_and_time(tmp_path):
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


def test_without_metrics_there_is_no_panel_for_them():
    assert [ax.get_ylabel() for ax in long(5, 1).plot()] == ["loss", "seconds of an iteration"]
    assert len(History().plot()) == 2


@pytest.mark.parametrize("iterations", [1, POINTS, POINTS + 1, 3 * POINTS + 7])
def test_of_many_iterations_means_are_drawn(iterations):
    _, time = long(iterations).plot()
    forward = time.collections[1].get_paths()[0].vertices  # from data's 0.1 to 0.3
    assert set(np.round(forward[:, 1], 9)) == {0.1, 0.3}
    assert len(forward) <= 4 * POINTS + 8
    assert forward[:, 0].min() > 0
    assert forward[:, 0].max() < iterations


def fit_line(*callbacks):
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    samples = SampleSet.from_arrays(x=x, y=x[:, :1])
    trainer = Trainer(nn.Linear(3, 1), nn.MSELoss(), SGD(0.1))
    trainer.fit(samples, epochs=3, batch_size=8, callbacks=list(callbacks), progress=False)


@pytest.mark.slow
def test_a_picture_changes_during_a_fit(tmp_path):
    import matplotlib.pyplot as plt

    path = tmp_path / "fit.png"
    seen = On(epoch=lambda trainer: path.read_bytes())
    fit_line(LivePlot(path, every=0), seen)
    assert all(picture.startswith(b"\x89PNG") for picture in seen.seen)
    assert len(set(seen.seen)) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["fit.png"]
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_pictures_are_as_rare_as_is_wanted(tmp_path):
    path = tmp_path / "fit.png"
    seen = On(epoch=lambda trainer: path.read_bytes())
    fit_line(LivePlot(path, every=1000), seen)
    assert len(set(seen.seen)) == 1
    assert path.read_bytes() != seen.seen[0]


def test_without_a_notebook_a_live_plot_needs_a_file(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    with pytest.raises(SettingsError, match=r"a notebook or path=, found neither; LivePlot\('fit"):
        fit_line(LivePlot())


Points = dict[str, dict[int, float]]


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(path: Path) -> Iterator[Any]:
    """Yield the events of a file: records of a length, a checksum, the data and a checksum."""
    content, at = path.read_bytes(), 0
    while at < len(content):
        head = content[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        data = content[at + 12 : at + 12 + length]
        checks = content[at + 8 : at + 12] + content[at + 12 + length : at + 16 + length]
        assert struct.unpack("<II", checks) == (masked(head), masked(data))
        yield Event.FromString(data)
        at += 16 + length


def points(folder: Path) -> Points:
    """Return what TensorBoard shows: the start of a session removes later steps of earlier ones."""
    shown: Points = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in events(path):
            if event.HasField("session_log"):
                for values in shown.values():
                    for step in [step for step in values if step >= event.step]:
                        del values[step]
            for value in event.summary.value:
                shown.setdefault(value.tag, {})[event.step] = value.simple_value
    return shown


def test_a_fit_is_in_the_file(tmp_path):
    trainer = fit(problem(), epochs=2, validation=problem(2), callbacks=[TensorBoard(tmp_path)])
    drawn, history = points(tmp_path), trainer.history
    steps = list(range(1, 15))
    per_iteration = {f"seconds/{phase}" for phase in PHASES}
    per_iteration |= {"iteration/loss", "iteration/samples_per_second"}
    assert per_iteration <= set(drawn)
    assert all(list(drawn[tag]) == steps for tag in per_iteration)
    np.testing.assert_allclose([*drawn["iteration/loss"].values()], history["loss"], rtol=1e-6)
    np.testing.assert_allclose([*drawn["seconds/wait"].values()], history["wait"], rtol=1e-6)
    rates = history.to_frame()["samples_per_second"]
    np.testing.assert_allclose([*drawn["iteration/samples_per_second"].values()], rates, rtol=1e-6)
    for name in ("loss", "val_loss", "samples_per_second", "validation"):
        expected = {row["iteration"]: pytest.approx(row[name]) for row in history.epochs}
        assert drawn[f"epoch/{name}"] == expected


def test_events_have_the_times_of_their_iterations(tmp_path):
    trainer = fit(problem(), epochs=1, callbacks=[TensorBoard(tmp_path)])
    (path,) = tmp_path.iterdir()
    times = [
        event.wall_time
        for event in events(path)
        if [v.tag for v in event.summary.value] == ["iteration/loss"]
    ]
    assert len(times) == 7
    # Within a group, times differ by the seconds of an iteration; groups end at 1, 5 and 7.
    np.testing.assert_allclose(np.diff(times)[1:4], trainer.history["seconds"][2:5], atol=1e-5)


@pytest.mark.usefixtures("short_groups")
def test_a_resumed_run_goes_on_in_the_same_folder(tmp_path):
    logs, checkpoint = tmp_path / "logs", tmp_path / "c"
    options = {"epochs": 2, "checkpoint": checkpoint, "checkpoint_every": 4}
    with pytest.raises(RuntimeError):
        fit(problem(), callbacks=[TensorBoard(logs), Do(6, failing(RuntimeError))], **options)
    before = points(logs)
    assert list(before["iteration/loss"]) == [1, 2, 3, 4, 5, 6]  # though the file was not closed
    options |= {"epochs": None, "iterations": 5}
    trainer = fit(problem(), callbacks=[TensorBoard(logs)], **options)
    after = points(logs)["iteration/loss"]
    assert list(after) == [1, 2, 3, 4, 5]  # steps after the checkpoint are gone
    np.testing.assert_allclose([*after.values()], trainer.history["loss"], rtol=1e-6)


def test_without_tensorboardx_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtraError, match=r"pip install daskdl\[tensorboard\]"):
        TensorBoard("logs")
