"""Ctrl-C in a script is one line; a user's own line is in the message of an exception."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import PredictionError, TrainingError
from daskdl.nn import Linear, Module, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer

SCRIPT = """
import os, signal, sys
import numpy as np
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Callback, Trainer

# Whoever starts programs in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

class CtrlC(Callback):
    def on_group_end(self, trainer, iteration):
        os.kill(os.getpid(), signal.SIGINT)

x = np.ones((8, 2), np.float32)
Trainer(Linear(2, 1), MSELoss(), SGD(0.1)).fit(
    x, x[:, :1], epochs=9, callbacks=[CtrlC()], progress=False, checkpoint=sys.argv[1]
)
"""


#: Lines of a first run, and of a batch larger than the samples.
ASIDE = ("compiling kernels", "Trainer.fit: batch_size")


@pytest.mark.parametrize("traceback", [False, True])
def test_ctrl_c_in_a_script_is_one_line(tmp_path: Path, traceback: bool) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, **({"DASKDL_TRACEBACK": "1"} if traceback else {})}
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "saved")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert run.returncode == -2  # as a shell expects of Ctrl-C
    told = [line for line in run.stderr.splitlines() if not line.startswith(ASIDE)]
    assert "fit interrupted after iteration" in told[-1]
    assert f"goes on from the checkpoint in {tmp_path}/saved" in told[-1]
    assert len(told) == 1 or traceback
    assert ("Traceback" in run.stderr) is traceback


class Broken(Module):
    """Fails for negative inputs alone, so that the trial passes."""

    def __init__(self, least: float) -> None:
        self.linear = Linear(2, 1)
        self.least = least

    def forward(self, x):
        if x.min() < self.least:
            raise ZeroDivisionError("of my own")
        return self.linear(x)


X = np.concatenate([np.ones((4, 2)), -np.ones((4, 2))]).astype(np.float32)
LINE = r" \(test_interruption.py, line \d+, in forward: raise ZeroDivisionError\(\"of my own\"\)\)"


@pytest.mark.parametrize("least", [0.0, 2.0])
def test_the_users_line_is_in_the_message(least: float) -> None:
    """At the trial, which is before anything, and in an iteration."""
    where = "iteration 0" if least == 0 else "Broken: one sample of shapes"
    with pytest.raises(TrainingError, match=rf"{where}.*ZeroDivisionError: of my own{LINE}"):
        Trainer(Broken(least), MSELoss(), SGD(0.1)).fit(X, X[:, :1], epochs=1, progress=False)


def test_on_a_worker_too(client) -> None:
    samples = SampleSet.from_arrays(x=X, y=X[:, :1], partitions=2)
    trainer = Trainer(Broken(0.0), MSELoss(), SGD(0.1))
    with pytest.raises(TrainingError, match=rf"at worker .*of my own{LINE}"):
        trainer.fit(samples, epochs=1, progress=False, client=client)
    with client.as_current(), pytest.raises(PredictionError, match=rf"partition 1.*{LINE}"):
        trainer.model.predict(samples).compute()
