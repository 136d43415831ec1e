from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from daskdl.nn import MSELoss
from daskdl.optim import SGD
from daskdl.train import Callback, Trainer
from daskdl.train.watch.progress import Bar, Lines, Silent, make_progress
from tests.daskdl.train.runs import fit, network, problem

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


def test_a_log_has_a_line_every_half_a_minute(capsys: Captured) -> None:
    clock = Clock()
    lines = Lines(clock=clock)
    lines.start(100, 500)  # a resumed run: what was done before tells nothing about the time left
    for second in range(101):
        clock.now = float(second)
        lines.advance(100 + second, 0.25, 1234.0)
    lines.stop()
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "iteration 130/500, loss 0.25, 1.23e+03 samples/s, 0:06:10 left",
        "iteration 160/500, loss 0.25, 1.23e+03 samples/s, 0:05:40 left",
        "iteration 190/500, loss 0.25, 1.23e+03 samples/s, 0:05:10 left",
    ]


def test_the_end_of_an_epoch_is_told_and_counts_as_a_line(capsys: Captured) -> None:
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


def test_of_short_epochs_the_first_of_a_second_and_the_very_last_are_told(
    capsys: Captured,
) -> None:
    clock = Clock()
    lines = Lines(clock=clock)
    lines.start(0, 1000)
    for epoch in range(8):  # stopped early: the last is not the run's last iteration
        clock.now = 0.3 * epoch
        lines.epoch(epoch, row(epoch + 1))
    lines.stop()
    lines.stop()
    told = [line.split(":")[0] for line in capsys.readouterr().err.splitlines()]
    assert told == ["epoch 1", "epoch 5", "epoch 8"]


def test_a_terminal_has_a_bar_and_a_line_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_log_file_has_lines_and_who_does_not_want_it_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert isinstance(make_progress(True), Lines)  # captured, thus no terminal
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert type(make_progress(False)) is Silent


def test_a_fit_says_what_its_epochs_came_to_or_nothing(capsys: Captured) -> None:
    trainer = Trainer(network(), MSELoss(), SGD(1e-5))
    trainer.fit(problem(), epochs=1, validation=problem(1))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"epoch 1: loss {trainer.history.epochs[0]['loss']:.4g}, val_loss ")
    fit(problem(), epochs=1, validation=problem(1))  # progress=False
    assert capsys.readouterr() == ("", "")


def test_where_a_fit_goes_on_is_told_and_that_nothing_is_left(
    tmp_path: Path, capsys: Captured
) -> None:
    class Stop(Callback):
        def on_epoch_end(self, trainer: Trainer, epoch: int, logs: object) -> bool:
            return True

    def told(folder: Path, iterations: int, **options: object) -> str:
        trainer = Trainer(network(), MSELoss(), SGD(0.1))
        trainer.fit(problem(), iterations=iterations, checkpoint=folder, **options)
        return capsys.readouterr().err.splitlines()[0]

    first, second = tmp_path / "a", tmp_path / "b"
    assert told(first, 3).startswith("epoch 1: loss")
    of = f"the checkpoint in {first} is after iteration 3 of"
    assert told(first, 5) == f"the fit goes on: {of} 5"
    assert told(first, 5) == f"nothing is left to do: {of.replace('iteration 3', 'iteration 5')} 5"
    told(second, 9, callbacks=[Stop()])
    assert told(second, 9).endswith(" of 9, where a callback ended the fit")
    Trainer(network(), MSELoss(), SGD(0.1)).fit(
        problem(), iterations=5, checkpoint=first, progress=False
    )
    assert capsys.readouterr().err == ""
