"""Broadcast: weights lie on every worker once, and graphs name them by their key."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator

import cloudpickle
import dask.array as da
import numpy as np
import pytest
from dask.delayed import Delayed
from distributed import Client, wait

from daskdl.nn import Linear
from daskdl.predict import Predictor
from daskdl.predict.kept import _sent, held_by_workers

LARGE = Linear(1000, 500, seed=1)  # 2 MB


@pytest.fixture
def copies_stay(current: Client) -> Iterator[Client]:
    """Stop Dask from removing copies that no task waits for, every two seconds."""
    current.amm.stop()
    yield current
    current.amm.start()


def models(client: Client) -> set[str]:
    """Return the keys of the models that the client asks the workers to keep."""
    return {key for key in client.futures if str(key).startswith("model-")}


@pytest.mark.slow
def test_every_worker_has_the_weights_once_and_the_graph_their_key(copies_stay):
    client, before = copies_stay, models(copies_stay)
    x = da.ones((64, 1000), chunks=(4, 1000), dtype=np.float32)
    result = LARGE.predict(x)
    (key,) = models(client) - before
    assert len(client.who_has()[key]) == 2
    assert client.nbytes(summary=False)[key] >= LARGE.vector.nbytes
    assert len(cloudpickle.dumps(result.dask)) < 20_000
    # The same model is the same key.
    again = LARGE.predict(x[:5])
    assert models(client) - before == {key}
    expected = LARGE.predict(np.ones((1, 1000)))
    np.testing.assert_allclose(again[:1].compute(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_weights_go_when_nothing_needs_them(current):
    before, model = models(current), Linear(1000, 500, seed=2)
    result = model.predict(da.ones((8, 1000), chunks=(4, 1000)))
    persisted = result.persist()
    wait(persisted)
    (key,) = models(current) - before
    del result
    limit = time.monotonic() + 60
    while key in models(current) and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.02)
    assert key not in models(current)
    expected = 8 * model.predict(np.ones((1, 1000))).sum()
    assert persisted.sum().compute() == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_predictions_one_after_another_do_not_take_the_weights_from_each_other(current):
    model = Linear(100, 100, seed=3)
    for n in range(1, 21):  # each lets go of the weights just as the next one sends them
        total = model.predict(da.ones((n, 100), chunks=(1, 100))).sum().compute()
        expected = n * model.predict(np.ones((1, 100))).sum()
        assert total == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_weights_that_were_lost_are_sent_again(current):
    before, model = models(current), Linear(100, 100, seed=4)
    x = da.ones((8, 100), chunks=(4, 100))
    lost = model.predict(x)
    current.cancel([future for future in _sent.values() if future.key not in before], force=True)
    total = model.predict(x).sum().compute()
    assert total == pytest.approx(8 * model.predict(np.ones((1, 100))).sum(), rel=1e-3)
    assert lost.shape == (8, 100)  # its graph still refers to the lost weights


@pytest.mark.slow
@pytest.mark.kills
def test_weights_come_back_after_their_only_worker_was_killed(current):
    before, model = models(current), Linear(100, 100, seed=5)
    result = model.predict(da.ones((8, 100), chunks=(4, 100)))
    (key,) = models(current) - before
    limit = time.monotonic() + 60

    def lacks_task(dask_scheduler):
        return dask_scheduler.tasks[key].run_spec is None

    while current.run_on_scheduler(lacks_task) and time.monotonic() < limit:
        time.sleep(0.02)
    current.replicate([f for f in _sent.values() if f.key == key], n=1)
    (holder,) = current.who_has()[key]
    os.kill(current.run(os.getpid)[holder], signal.SIGKILL)
    while holder in current.scheduler_info()["workers"] and time.monotonic() < limit:
        time.sleep(0.02)
    np.testing.assert_array_equal(result.compute(), model.predict(np.ones((8, 100)), client=False))


def test_without_a_client_the_graph_has_the_weights_once():
    predictor = Predictor(LARGE).snapshot()
    weights = held_by_workers(predictor)
    assert isinstance(weights, Delayed)
    assert weights.key == f"model-{predictor.token}"
    result = LARGE.predict(da.ones((64, 1000), chunks=(4, 1000)))
    once = LARGE.vector.nbytes
    assert once < len(cloudpickle.dumps(dict(result.dask))) < 1.5 * once
