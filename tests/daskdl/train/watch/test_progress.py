"""Trainer, History and Module in notebooks; the progress of a fit there and in logs."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

from daskdl.metrics import Accuracy
from daskdl.nn import CrossEntropyLoss, Linear, MSELoss, ReLU, Sequential
from daskdl.optim import SGD, Adam
from daskdl.train import Trainer
from daskdl.train.watch.display import sparkline
from daskdl.train.watch.progress import Bar, Lines, Progress, make_progress
from tests.daskdl.train.runs import On, fit, network, problem

Captured = pytest.CaptureFixture[str]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def row(iteration: int, **more: float) -> dict[str, float]:
    return {"epoch": 0, "iteration": iteration, "loss": 0.5, "samples": 100, "seconds": 2, **more}


def test_a_log_has_a_line_every_half_a_minute(capsys):
    clock = Clock()
    lines = Lines(clock=clock)
    lines.start(99, 500)  # a resumed run: earlier iterations do not count for the time left
    clock.now = 40  # of the first iteration, which compiles
    for second in range(101):
        lines.advance(100 + second, 0.25, 1234.0)
        clock.now += 1
    lines.stop()
    logs = capsys.readouterr()
    assert logs.out == ""
    assert logs.err.splitlines() == [
        "iteration 100/500, loss 0.25, 1.23e+03 samples/s",
        "iteration 130/500, loss 0.25, 1.23e+03 samples/s, 0:06:10 left",
        "iteration 160/500, loss 0.25, 1.23e+03 samples/s, 0:05:40 left",
        "iteration 190/500, loss 0.25, 1.23e+03 samples/s, 0:05:10 left",
    ]


def test_the_end_of_an_epoch_is_logged_and_counts_as_a_line(capsys):
    clock = Clock()
    lines = Lines(clock=clock)
    lines.start(0, 100)
    clock.now = 20
    lines.epoch(0, row(50, val_loss=0.75, val_mae=0.125))
    clock.now = 49
    lines.advance(60, 0.25, 10)
    assert capsys.readouterr().err == (
        "epoch 1: loss 0.5, val_loss 0.75, val_mae 0.125, 50 samples/s\n"
    )
    clock.now = 50
    lines.advance(61, 0.25, 10)
    assert capsys.readouterr().err.startswith("iteration 61/100")


def test_of_short_epochs_the_first_of_a_second_and_the_last_are_logged(capsys):
    clock = Clock()
    lines = Lines(clock=clock)
    lines.start(0, 1000)
    for epoch in range(8):  # stopped early: the last is not the run's last iteration
        clock.now = 0.3 * epoch
        lines.epoch(epoch, row(epoch + 1))
    lines.stop()
    lines.stop()
    epochs = [line.split(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert epochs == ["epoch 1", "epoch 5", "epoch 8"]


def test_a_terminal_has_a_bar_and_a_line_an_epoch(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    bar = make_progress(True)
    assert isinstance(bar, Bar)
    bar.start(10, 40)
    bar.advance(20, 0.25, 1234)
    bar.epoch(1, row(20, **{"val_[csi]": 0.5}))
    bar.stop()
    shown = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert "epoch 2: loss 0.5, val_[csi] 0.5, 50 samples/s" in shown
    assert "20/40" in shown
    assert "loss 0.25, 1.23e+03 samples/s" in shown


def test_a_log_file_has_lines_or_nothing(monkeypatch, capsys):
    assert isinstance(make_progress(True), Lines)  # captured, thus no terminal
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert type(make_progress(False)) is Progress


def test_a_fit_logs_its_epochs_or_nothing(capsys):
    trainer = Trainer(network(), MSELoss(), SGD(1e-5))
    trainer.fit(problem(), epochs=1, validation=problem(1))
    logs = capsys.readouterr()
    assert logs.out == ""
    assert logs.err.startswith(f"epoch 1: loss {trainer.history.epochs[0]['loss']:.4g}, val_loss ")
    fit(problem(), epochs=1, validation=problem(1))  # progress=False
    assert capsys.readouterr() == ("", "")


def test_a_resumed_fit_logs_where_it_goes_on(tmp_path, capsys):
    def line(folder, iterations, **options):
        trainer = Trainer(network(), MSELoss(), SGD(0.1))
        trainer.fit(problem(), iterations=iterations, checkpoint=folder, **options)
        return capsys.readouterr().err.splitlines()[0]

    first, second = tmp_path / "a", tmp_path / "b"
    assert line(first, 3).startswith("epoch 1: loss")
    of = f"the checkpoint in {first} is after iteration 3 of"
    assert line(first, 5) == f"the fit goes on: {of} 5"
    assert line(first, 5) == f"nothing is left to do: {of.replace('iteration 3', 'iteration 5')} 5"
    line(second, 9, callbacks=[On(epoch=lambda trainer: True)])
    assert line(second, 9).endswith(" of 9, where a callback ended the fit")
    Trainer(network(), MSELoss(), SGD(0.1)).fit(
        problem(), iterations=5, checkpoint=first, progress=False
    )
    assert capsys.readouterr().err == ""


X = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def trainer() -> Trainer:
    model = Sequential(Linear(4, 8, seed=1), ReLU(), Linear(8, 2, seed=2))
    return Trainer(model, CrossEntropyLoss(), Adam(1e-2), metrics=[Accuracy()])


def test_a_trainer_shows_its_model_and_its_losses():
    made = trainer()
    assert "not fitted yet" in made._repr_html_()
    made.fit(X, Y, epochs=12, batch_size=16, progress=False)
    html = made._repr_html_()
    assert "Sequential of 58 parameters" in html
    assert "<polyline" in html
    epochs = re.findall(r"<tr><td>(\d+)</td>", made.history._repr_html_())
    assert epochs == [str(e) for e in range(3, 13)]  # the last ten
    assert "<th>accuracy</th>" in html


def test_a_sparkline_goes_down_with_the_loss():
    points = re.search(r'points="([^"]+)"', sparkline([3.0, np.nan, 2.0, 1.0])).group(1)
    at = [tuple(map(float, p.split(","))) for p in points.split()]
    assert len(at) == 3
    assert [y for _, y in at] == sorted(y for _, y in at)  # down the page
    assert sparkline([]) == sparkline([np.nan]) == ""
    assert sparkline(range(10_000)).count(",") == 120


def test_a_module_is_a_table():
    model = trainer().model.freeze("layers.0")
    html = model._repr_html_()
    assert "Linear(4, 8, seed=1)" in html
    assert "40 (frozen)" in html
    assert html.count("<tr>") == 5


NOTEBOOK = [
    "import numpy as np\nfrom daskdl.nn import Linear, MSELoss\nfrom daskdl.optim import SGD\n"
    "from daskdl.train import Trainer\nx = np.ones((32, 2), np.float32)\n"
    "trainer = Trainer(Linear(2, 1), MSELoss(), SGD(0.1))\n"
    "history = trainer.fit(x, x[:, :1], epochs=3, batch_size=8)",
    "trainer",
    "history",
    "from daskdl.train import LivePlot\n"
    "trainer.fit(x, x[:, :1], epochs=3, batch_size=8, callbacks=[LivePlot(every=0)])",
    "import os, signal\nfrom daskdl.train import Callback\n"
    "class CtrlC(Callback):\n"
    "    def on_group_end(self, trainer, iteration):\n"
    "        os.kill(os.getpid(), signal.SIGINT)\n"
    "trainer.fit(x, x[:, :1], epochs=3, batch_size=8, callbacks=[CtrlC()])",
]


@pytest.mark.kills  # Ctrl-C in its last cell
@pytest.mark.long
def test_an_executed_notebook_shows_progress_and_tables():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipywidgets")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in NOTEBOOK])
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    fit, shown, history, live, stopped = (cell.outputs for cell in notebook.cells)
    assert "application/vnd.jupyter.widget-view+json" in fit[0].data
    widgets = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    texts = [w["state"].get("value", "") for w in widgets.values()]
    assert any("iteration 12 of 12" in str(t) and "<polyline" in str(t) for t in texts)
    assert "Trainer</caption>" in shown[0].data["text/html"]
    assert "<polyline" in history[0].data["text/html"]
    assert sum("image/png" in output.get("data", {}) for output in live) == 1  # it is replaced
    traceback = "\n".join(stopped[-1].traceback)
    assert "fit interrupted after iteration" in traceback
    assert "Traceback" not in traceback
