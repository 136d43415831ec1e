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


@pytest.mark.slow
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


OWN_CLUSTER = """
import logging, os, signal, time
import numpy as np
from distributed import Client, LocalCluster
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train import Callback, Trainer

class CtrlC(Callback):
    def on_group_end(self, trainer, iteration):
        os.killpg(0, signal.SIGINT)  # as a terminal does
        time.sleep(1)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": logging.CRITICAL}
    with LocalCluster(2, threads_per_worker=1, **options) as cluster, Client(cluster) as client:
        x = np.ones((64, 2), np.float32)
        Trainer(Linear(2, 1), MSELoss(), SGD(0.1)).fit(
            x, x[:, :1], epochs=9, callbacks=[CtrlC()], progress=False, client=client
        )
"""


@pytest.mark.slow
def test_ctrl_c_does_not_end_workers_of_ones_own_cluster(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(OWN_CLUSTER)
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, start_new_session=True
    )
    assert run.returncode == -2
    told = [line for line in run.stderr.splitlines() if not line.startswith(ASIDE)]
    assert len(told) == 1, run.stderr
    assert told[0].startswith("fit interrupted after iteration")


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


@pytest.mark.slow
def test_on_a_worker_too(client) -> None:
    samples = SampleSet.from_arrays(x=X, y=X[:, :1], partitions=2)
    trainer = Trainer(Broken(0.0), MSELoss(), SGD(0.1))
    with pytest.raises(TrainingError, match=rf"at worker .*of my own{LINE}"):
        trainer.fit(samples, epochs=1, progress=False, client=client)
    with client.as_current(), pytest.raises(PredictionError, match=rf"partition 1.*{LINE}"):
        trainer.model.predict(samples).compute()
