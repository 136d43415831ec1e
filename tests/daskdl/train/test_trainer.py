"""Trainer.fit: what it refuses, where it runs, and how it goes on after an interruption."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskdl.data import SampleSet
from daskdl.errors import CheckpointError, SettingsError, ShapeError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD, Adam
from daskdl.train import BestModel, Callback, EarlyStopping, Trainer
from tests.daskdl.train.runs import digest, fit, network, problem

ROOT = Path(__file__).resolve().parents[3]


# --- what does not fit together


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "either epochs or iterations, found epochs=None and iterations=None"),
        ({"epochs": 1, "iterations": 1}, "either epochs or iterations"),
        ({"epochs": 0}, "at least 1 epoch or iteration, found epochs=0"),
        ({"iterations": -3}, "at least 1 epoch or iteration"),
        ({"epochs": 1, "batch_size": 0}, "batch_size: expected a whole number .* found 0"),
        ({"epochs": 1, "batch_size": 2.5}, "batch_size: expected a whole number .* found 2.5"),
        ({"epochs": 1, "checkpoint_every": 0}, "checkpoint_every: expected a whole number"),
        ({"epochs": 1, "threads": "two"}, "threads: expected a whole number .* found 'two'"),
        ({"epochs": 1, "metrics": {"mae": abs}}, r"validation samples to compute \['mae'\] on"),
    ],
)
def test_settings_that_cannot_be_are_refused(options, said) -> None:
    with pytest.raises(SettingsError, match=said):
        Trainer(network(), MSELoss(), SGD(0.1)).fit(problem(), progress=False, **options)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(SettingsError, match="seed of at least 0, found -1"):
        Trainer(network(), MSELoss(), SGD(0.1), seed=-1)


def test_what_the_model_cannot_read_is_known_before_any_task(client: Client, tmp_path) -> None:
    trainer = Trainer(Linear(4, 2), MSELoss(), SGD(0.1))
    with pytest.raises(ShapeError):
        trainer.fit(problem(), epochs=1, client=client, checkpoint=tmp_path / "c", progress=False)
    assert not (tmp_path / "c").exists()


def test_an_asynchronous_client_is_refused(cluster: LocalCluster) -> None:
    async def ask() -> None:
        address = cluster.scheduler_address
        async with Client(address, asynchronous=True, set_as_default=False) as client:
            with pytest.raises(SettingsError, match="expected a synchronous Client"):
                fit(problem(), client=client)

    asyncio.run(ask())


# --- where it runs


def test_the_default_client_is_used(cluster: LocalCluster, client: Client) -> None:
    class Where(Callback):
        held = 0

        def on_group_end(self, trainer: Trainer, iteration: int) -> None:
            self.held = max(self.held, sum(map(len, client.has_what().values())))

    alone, together = Where(), Where()
    expected = digest(fit(problem(), callbacks=[alone]))
    assert alone.held == 0
    with Client(cluster):
        assert digest(fit(problem(), callbacks=[together])) == expected
    assert together.held >= 4  # shards


def test_shards_are_the_partitions_unless_told(client: Client) -> None:
    four = digest(fit(problem(4)))
    assert digest(fit(problem(1), shards=4)) == four
    assert digest(fit(problem(7), shards=4, client=client)) == four
    assert digest(fit(problem(4), shards=1)) != four


def test_after_a_fit_the_workers_hold_nothing(client: Client) -> None:
    fit(problem(), client=client, validation=problem(3))
    limit = time.monotonic() + 20
    while any(client.has_what().values()):
        assert time.monotonic() < limit, client.has_what()
        time.sleep(0.02)


def test_the_history_has_every_iteration_and_epoch(client: Client) -> None:
    trainer = fit(problem(), epochs=2, validation=problem(3), client=client)
    assert len(trainer.history["loss"]) == 2 * 7
    assert [epoch["epoch"] for epoch in trainer.history.epochs] == [0, 1]
    model = trainer.model
    whole = problem(1).head(53)
    expected = float(MSELoss()(model(whole["x"]), whole["y"]))
    np.testing.assert_allclose(trainer.history.epochs[-1]["val_loss"], expected, rtol=1e-5)


# --- interruptions


class Interrupt(Callback):
    """Raises what Ctrl-C raises, once, after so many iterations."""

    def __init__(self, after: int) -> None:
        self.after = after

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        if iteration >= self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("after", [3, 7, 11])
def test_a_run_interrupted_on_a_cluster_goes_on_in_this_process(
    client: Client, tmp_path: Path, after: int
) -> None:
    def options() -> dict[str, object]:
        kept = [BestModel(), EarlyStopping(patience=5)]
        return {"validation": problem(3), "checkpoint": tmp_path / "c", "callbacks": kept}

    whole = fit(problem(), validation=problem(3), callbacks=[BestModel()])
    first = options()
    first["callbacks"].append(Interrupt(after))  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        fit(problem(), client=client, **first)
    again = fit(problem(), **options())
    assert digest(again) == digest(whole)
    np.testing.assert_array_equal(again.history["loss"], whole.history["loss"])


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    done = fit(problem(), checkpoint=tmp_path / "c")
    again = fit(problem(), checkpoint=tmp_path / "c", callbacks=[Interrupt(0)])
    assert digest(again) == digest(done)
    np.testing.assert_array_equal(again.history["loss"], done.history["loss"])


def test_another_run_does_not_go_on_from_it(tmp_path: Path) -> None:
    fit(problem(), checkpoint=tmp_path / "c", epochs=1)
    before = sorted((tmp_path / "c").rglob("*"))
    for other in ({"batch_size": 9}, {"shards": 2}):
        with pytest.raises(CheckpointError, match=str(tmp_path / "c")):
            fit(problem(), checkpoint=tmp_path / "c", epochs=1, **other)
    assert sorted((tmp_path / "c").rglob("*")) == before


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    one = fit(problem(), checkpoint=tmp_path / "c", batch_size=np.int64(9), epochs=1)
    assert digest(one) == digest(fit(problem(), batch_size=9, epochs=1))


def test_a_run_is_not_cleared_away_by_one_that_cannot_start(tmp_path: Path) -> None:
    fit(problem(), checkpoint=tmp_path / "c", epochs=1)
    with (
        dask.config.set({"daskdl.checkpoint-interval": "often"}),
        pytest.raises(SettingsError),
    ):
        fit(problem(), checkpoint=tmp_path / "c", epochs=1, resume=False)
    assert list((tmp_path / "c").glob("step-*"))


def test_afresh_when_told(tmp_path: Path) -> None:
    fit(problem(), checkpoint=tmp_path / "c", epochs=1)
    afresh = fit(problem(), checkpoint=tmp_path / "c", batch_size=9, epochs=1, resume=False)
    assert digest(afresh) == digest(fit(problem(), batch_size=9, epochs=1))


SCRIPT = """
import sys
from daskdl.cluster import connect
from daskdl.train import Callback
from tests.daskdl.train.runs import digest, fit, problem

class Say(Callback):
    def on_group_end(self, trainer, iteration):
        print(iteration, flush=True)

if __name__ == "__main__":
    workers, folder = int(sys.argv[1]), sys.argv[2]
    with connect("local", workers=workers) as client:
        print(*(client.run(__import__("os").getpid).values()), flush=True)
        trainer = fit(
            problem(), client=client, epochs=30, checkpoint=folder, checkpoint_every=10,
            callbacks=[Say()],
        )
    print(digest(trainer))
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_driver_leaves_a_run_that_goes_on_and_no_workers(tmp_path: Path) -> None:
    """The same command, after kill -9 and on another number of workers."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def start(workers: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), str(workers), str(tmp_path / "c")],
            stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    with start(2) as driver:
        assert driver.stdout is not None
        workers = [int(pid) for pid in driver.stdout.readline().split()]
        for line in driver.stdout:
            if int(line) > 60:
                driver.kill()
                break
    assert driver.returncode == -9
    limit = time.monotonic() + 60
    while any(map(alive, workers)):
        assert time.monotonic() < limit, "workers outlive their driver"
        time.sleep(0.05)
    with start(1) as driver:
        said, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0
    lines = said.split("\n")
    assert int(lines[1]) > 50  # it did not begin anew
    assert lines[-2] == digest(fit(problem(), epochs=30))


# --- what is trained


def test_samples_without_y_are_refused() -> None:
    from daskdl.errors import DataError

    samples = SampleSet.from_arrays(x=np.zeros((4, 5), np.float32))
    with pytest.raises(DataError, match="y"):
        Trainer(network(), MSELoss(), Adam(1e-3)).fit(samples, epochs=1, progress=False)
