"""Tables trained by rows: the same bits in every engine, and after faults."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest

from daskdl.collective.exchange import Exchange
from daskdl.data import SampleSet
from daskdl.errors import CheckpointError
from daskdl.kernels.runtime.threads import threads
from daskdl.nn import Embedding, MSELoss
from daskdl.optim import SGD, Adagrad, Adam
from daskdl.train import Trainer
from daskdl.train.engines.tables import Tables
from daskdl.train.fit.checkpoint import CheckpointFolder
from tests.daskdl.train.jobs import Recommender, digest_of_all, fit_ratings, ratings
from tests.daskdl.train.runs import Once, die


@pytest.fixture(scope="session")
def undisturbed() -> str:
    return digest_of_all(fit_ratings(validation=ratings(2)))


class Modest(Adam):
    """Steps rows with one thread, or raises."""

    def update_rows(self, *put: Any, **more: Any) -> None:
        assert threads() == 1
        super().update_rows(*put, **more)


def test_rows_are_stepped_with_the_threads_of_the_job(client):
    """The other cores of the machine belong to other workers."""
    with dask.config.set({"daskdl.threads": 1}):
        fitted = fit_ratings(method=Modest(0.05), client=client, engine="gang", iterations=3)
    assert len(fitted.history) == 3


@pytest.mark.kills
@pytest.mark.parametrize("engine", ["gang", "graph"])
def test_a_killed_worker_changes_nothing(client, tmp_path, undisturbed, engine):
    samples = ratings().map(Once(tmp_path / "died", 20, die))
    with dask.config.set({"daskdl.group-time": "50 ms"}):
        assert digest_of_all(fit_ratings(samples, client=client, engine=engine)) == undisturbed
    assert (tmp_path / "died").exists()


@pytest.mark.slow
def test_a_run_goes_on_from_its_checkpoint_in_another_engine(client, tmp_path, undisturbed):
    options: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_every": 3}
    fit_ratings(iterations=6, **options)
    again = fit_ratings(client=client, engine="gang", **options)
    assert len(again.history) == 14
    assert digest_of_all(again) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [7, 8])
def test_a_dense_gradient_comes_to_the_same_weights(batch_size):
    by_rows, whole = (
        fit_ratings(method=SGD(0.1), sparse=s, batch_size=batch_size) for s in (True, False)
    )
    dense = whole.model.state_dict()
    for name, array in by_rows.model.state_dict().items():
        np.testing.assert_array_equal(array, dense[name])


def listen() -> None:
    """Record the bytes that this worker sends after the first iteration."""
    original = Exchange.swap

    def swap(self: Exchange, t: int, kind: str, sends: Any, receives: Any) -> Any:
        if t and kind != "gather":  # it sends the whole state, once a group
            SENT.extend(sum(a.nbytes for a in arrays) for _, arrays in sends.values())
        return original(self, t, kind, sends, receives)

    Exchange.swap = swap  # type: ignore[method-assign]


def heard() -> list[int]:
    """Undo ``listen`` and return the bytes of each message."""
    Exchange.swap = SWAP  # type: ignore[method-assign]
    sizes, SENT[:] = list(SENT), []
    return sizes


SWAP, SENT = Exchange.swap, list[int]()


def test_only_rows_of_the_batch_are_sent(client):
    samples = SampleSet.from_arrays(
        x=np.arange(30)[:, None] * 500, y=np.ones((30, 1, 16), np.float32), partitions=2
    )
    model = Embedding(20_000, 16, seed=0, sparse=True)  # 1.28 MB, and as much state
    before = model.weight.data.copy()
    trainer = Trainer(model, MSELoss(), Adagrad(0.1))
    client.run(listen)
    try:
        options = {"client": client, "engine": "gang", "progress": False}
        trainer.fit(samples, epochs=1, batch_size=10, **options)
    finally:
        sizes = [n for each in client.run(heard).values() for n in each]
    assert 0 < sum(sizes) < 10_000  # of 20 rows of 64 bytes there and back
    changed = (model.weight.data != before).any(1)
    np.testing.assert_array_equal(np.flatnonzero(changed), np.arange(30) * 500)


def test_a_run_by_rows_does_not_go_on_from_one_of_whole_tables(tmp_path):
    options: dict[str, Any] = {"checkpoint": tmp_path, "checkpoint_every": 1}
    fit_ratings(iterations=1, sparse=False, **options)
    with pytest.raises(CheckpointError, match=r'expected model.* \["users.weight", .* "rows"\]'):
        fit_ratings(iterations=2, **options)


@pytest.mark.slow
def test_an_optimizers_state_is_as_long_as_the_weights(tmp_path):
    trainer = fit_ratings(iterations=2, checkpoint=tmp_path, checkpoint_every=2)
    saved = CheckpointFolder(tmp_path).read()
    whole = trainer.model.snapshot()
    np.testing.assert_array_equal(saved.arrays["weights"], whole)
    assert saved.arrays["optimizer.mean"].shape == whole.shape
    users = Tables.of(trainer.model.joined).views(saved.arrays["optimizer.mean"])[0]
    before = Recommender().users.weight.data
    touched = (trainer.model.tables["users.weight"].data != before).any(1)
    np.testing.assert_array_equal(users.any(1), touched)
