from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable
from typing import Any

import dask
import numpy as np
import pytest

import daskdl.cluster.processors as cluster_threads
from daskdl.data import Batches, SampleSet
from daskdl.data.batches import permutation
from daskdl.errors import TrainingError
from daskdl.kernels.runtime.threads import threads
from daskdl.metrics import Mean
from daskdl.nn import BatchNorm, Linear, MSELoss, ReLU, Sequential, Sum
from daskdl.optim import SGD, Adam, ClipNorm
from daskdl.train import Trainer
from daskdl.train.engines import inprocess
from daskdl.train.engines.step import beginning
from tests.daskdl.train.jobs import new_job
from tests.daskdl.train.runs import digest, fit, network, problem

SEED, RATE = 5, 1e-3


def samples_of(n: int, partitions: int) -> SampleSet:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    return SampleSet.from_arrays(x=x, y=(x[:, :2] - 1).astype(np.float32), partitions=partitions)


def tree_sum(terms: list[np.ndarray | None]) -> np.ndarray | None:
    """Add in the canonical order: cut at half a power of two, and add each part in the same way."""
    if len(terms) == 1:
        return terms[0]
    half = 2 ** math.ceil(math.log2(len(terms))) // 2
    left, right = tree_sum(terms[:half]), tree_sum(terms[half:])
    return left if right is None else right if left is None else left + right


def plain_loop(
    samples: SampleSet, batch_size: int, epochs: int, dtype: type = np.float32
) -> tuple[np.ndarray, list[float]]:
    """Train one linear layer by SGD on the mean squared error, as in a textbook."""
    model = Linear(3, 2, seed=1)
    weight, bias = (p.data.astype(dtype) for _, p in model.named_parameters())
    shards = [recipe.load() for recipe in samples.recipes]
    losses = []
    for epoch in range(epochs):
        batches = Batches(samples.lengths, batch_size, SEED)
        for share in batches.shares(epoch, 0, len(batches)):
            terms: list[np.ndarray | None] = []
            total = 0.0
            for s, (start, count) in enumerate(zip(share.starts, share.counts, strict=True)):
                chosen = permutation(SEED, epoch, s, len(shards[s]))[start : start + count]
                x, y = shards[s].take(chosen).values()
                error = (x.astype(dtype) @ weight.T + bias) - y
                total += float((error.astype(float) ** 2).mean(1).sum())
                sums = np.concatenate([(error.T @ x.astype(dtype)).ravel(), error.sum(0)])
                terms.append(sums if count else None)
            gradient = tree_sum(terms) * dtype(1 / share.samples)
            weight = weight - dtype(RATE) * gradient[:6].reshape(2, 3)
            bias = bias - dtype(RATE) * gradient[6:]
            losses.append(total / share.samples)
    return np.concatenate([weight.ravel(), bias]), losses


@pytest.mark.parametrize(
    ("n", "partitions", "batch_size"),
    [
        (16, 1, 4),
        (23, 3, 8),  # the last batch is of 7, 2 or 3 of each shard
        (23, 5, 3),  # not every shard is in every batch
        (11, 4, 100),  # one batch, of fewer samples than asked for
        (3, 3, 1),
    ],
)
def test_a_fit_is_the_plain_loop(n, partitions, batch_size):
    samples = samples_of(n, partitions)
    assert samples.partitions == partitions
    trainer = Trainer(Linear(3, 2, seed=1), MSELoss(), SGD(RATE), seed=SEED)
    trainer.fit(samples, epochs=3, batch_size=batch_size, progress=False)
    weights, losses = plain_loop(samples, batch_size, 3, np.float64)
    np.testing.assert_allclose(trainer.model.flat, weights, rtol=0, atol=1e-6)
    np.testing.assert_allclose(trainer.history["loss"], losses, rtol=1e-5)
    assert len(trainer.history) == 3 * -(-n // batch_size)
    for epoch, row in enumerate(trainer.history.epochs):
        per_epoch = len(losses) // 3
        sizes = [min(batch_size, n - i * batch_size) for i in range(per_epoch)]
        part = losses[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert row["samples"] == sum(sizes) == n
        assert row["loss"] == pytest.approx(np.average(part, weights=sizes), rel=1e-5)


@pytest.mark.parametrize("partitions", [4, 5, 6, 7, 11])
def test_shards_are_added_in_the_canonical_order(partitions):
    values = np.ones(partitions, np.float32)
    values[0] = 2**24  # adding 1 is lost, adding 2 is not
    y = values[:, None]
    samples = SampleSet.from_arrays(x=np.ones_like(y), y=y, partitions=partitions)
    model = Linear(1, 1)
    model.flat[:] = 0  # so that each sample's gradient is -2 y, without rounding
    trainer = Trainer(model, MSELoss(), SGD(1.0))
    trainer.fit(samples, epochs=1, batch_size=partitions, progress=False)
    expected = tree_sum(list(2 * values)) * np.float32(1 / partitions)
    np.testing.assert_array_equal(trainer.model.flat, expected)
    assert expected != sum(2 * values) * np.float32(1 / partitions)  # the order shows


def test_each_validation_sample_counts_once():
    samples = problem(1, 13)
    x, y = samples.head(13).values()
    trainer = Trainer(network(), MSELoss(), Adam(1e-3), metrics={"bias": Mean(np.subtract)})
    trainer.fit(problem(), epochs=1, validation=samples.repartition(3), progress=False)
    error = trainer.model(x).data - y
    row = trainer.history.epochs[-1]
    assert row["val_loss"] == pytest.approx((error**2).mean(), rel=1e-5)
    assert row["val_bias"] == pytest.approx(error.mean(), rel=1e-5)


# --- errors


class At:
    """A loss that calls ``action`` if a sample has this target, except on a single sample."""

    def __init__(self, target: float, action: Callable[[Any], Any]) -> None:
        self.target, self.action = target, action

    def __call__(self, prediction: Any, target: Any) -> Any:
        loss = MSELoss()(prediction, target)
        return self.action(loss) if self.target in target and len(target) > 1 else loss


def fail(loss: Any) -> Any:
    raise LookupError("a mistake of the user's")


def spoil(loss: Any) -> Any:
    return loss * np.float32(np.nan)


def where_is(samples: SampleSet, shard: int, target: float, batch_size: int) -> int:
    """Return the first iteration that draws a sample."""
    batches = Batches(samples.lengths, batch_size, SEED)
    for share in batches.shares(0, 0, len(batches)):
        start, count = share.starts[shard], share.counts[shard]
        partition = samples.recipes[shard].load()
        chosen = permutation(SEED, 0, shard, len(partition))[start : start + count]
        if target in partition.take(chosen)["y"]:
            return share.iteration
    raise AssertionError("it is drawn once")


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("action", "message"),
    [
        (fail, "iteration {t} (epoch 0), shard 2: LookupError: a mistake of the user's"),
        (
            spoil,
            "iteration {t} (epoch 0), shard 2: expected a finite loss, found nan; the model's "
            "output is finite, the loss of it is not; lower the learning rate",
        ),
    ],
)
def test_a_mistake_in_a_shard_is_named(monkeypatch, cores, action, message):
    monkeypatch.setattr(inprocess, "granted_cores", lambda: cores)
    samples = problem(3)
    target = float(samples.recipes[2].load().arrays["y"][5, 0])
    t = where_is(samples, 2, target, 12)
    trainer = Trainer(network(), At(target, action), SGD(1e-5), seed=SEED)
    with pytest.raises(TrainingError) as raised:
        trainer.fit(samples, epochs=2, batch_size=12, progress=False)
    assert str(raised.value).startswith(message.format(t=t))
    assert len(trainer.history) <= t  # nothing of the wrong iteration
    assert np.isfinite(trainer.model.flat).all()
    if action is fail:
        cause = raised.value.__cause__
        assert isinstance(cause, LookupError)
        assert cause.__traceback__ is not None
        assert "a mistake" in str(cause)
    assert not [t for t in threading.enumerate() if t.name.startswith("daskdl-shard")]


class Broken(SGD):
    def update(self, weights: Any, gradient: Any, state: Any, iteration: int, **how: Any) -> Any:
        if iteration == 2:
            raise LookupError("a mistake of the user's")
        return super().update(weights, gradient, state, iteration, **how)


def test_a_mistake_elsewhere_is_named():
    trainer = Trainer(network(), MSELoss(), Broken(1e-5))
    with pytest.raises(TrainingError, match=r"^iteration 2, update: LookupError: a mistake"):
        trainer.fit(problem(), epochs=1, batch_size=8, progress=False)

    validation = problem(2, 9)
    target = float(validation.recipes[1].load().arrays["y"][2, 0])
    trainer = Trainer(network(), At(target, fail), SGD(1e-5))
    others = problem(3, 40).map(lambda batch: {**batch, "y": batch["y"] * 0 + 2})
    with pytest.raises(TrainingError, match=r"^validation, shard 1: LookupError: a mistake"):
        trainer.fit(others, epochs=1, validation=validation, progress=False)


seen: set[tuple[str, int]] = set()


def looking(prediction: Any, target: Any) -> Any:
    seen.update([("budget", threads()), ("thread", threading.get_ident())])
    return MSELoss()(prediction, target)


@pytest.mark.parametrize(
    ("shards", "setting", "budget"),
    [(4, 1, 1), (4, 3, 3), (1, None, 8), (3, None, 2), (4, None, 2), (5, None, 1), (9, None, 1)],
)
def test_the_thread_budget_of_the_settings_rules_or_shards_share_all_cores(
    shards, setting, budget, monkeypatch
):
    seen.clear()
    monkeypatch.setattr(cluster_threads, "granted_cores", lambda: 8)
    monkeypatch.setattr(inprocess, "granted_cores", lambda: 8)
    with dask.config.set({"daskdl.threads": setting}):
        Trainer(network(), looking, SGD(1e-5)).fit(problem(shards), iterations=1, progress=False)
    assert {n for kind, n in seen if kind == "budget"} == {budget}


def test_one_core_of_openmp_is_one_for_all_shards(monkeypatch):
    seen.clear()
    monkeypatch.setattr("daskdl.kernels.runtime.threads._OMP_NUM_THREADS", "1")
    Trainer(network(), looking, SGD(1e-5)).fit(problem(4), iterations=3, progress=False)
    assert seen == {("budget", 1), ("thread", threading.get_ident())}


def test_sums_and_the_update_have_the_threads_of_all_shards(monkeypatch):
    update, budgets = inprocess.step.update, []

    def watched(job, *rest, **more):
        budgets.append(job.threads)
        return update(job, *rest, **more)

    monkeypatch.setattr(inprocess.step, "update", watched)
    monkeypatch.setattr(inprocess, "granted_cores", lambda: 8)
    for partitions, budget in [(1, 2), (3, 6), (5, 8)]:
        Trainer(network(), MSELoss(), SGD(1e-5)).fit(
            problem(partitions), iterations=1, threads=2, progress=False
        )
        assert budgets.pop() == budget


@pytest.mark.slow
def test_one_core_and_many_give_the_same_bits(monkeypatch):
    def wide():
        return Sequential(Linear(5, 999, seed=1), ReLU(), Linear(999, 500, seed=2), Sum(-1))

    x, y = np.eye(20, 5, dtype="f4"), np.ones(20, "f4")
    samples = SampleSet.from_arrays(x=x, y=y, partitions=4)
    options = {"iterations": 3, "batch_size": 20, "threads": 1}
    results = set()
    for cores in (1, 2, 5):
        monkeypatch.setattr(inprocess, "granted_cores", lambda cores=cores: cores)
        of_threads = fit(samples, wide, ClipNorm(Adam(1e-3), 0.01), **options)  # sums and updates
        results.add((digest(fit(problem(), validation=problem(3))), digest(of_threads)))
    assert len(results) == 1


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("network", [Linear(3, 2), Sequential(BatchNorm(3), Linear(3, 2))])
def test_a_group_does_not_change_the_state_before_it(network, cores, monkeypatch):
    monkeypatch.setattr(inprocess, "granted_cores", lambda: cores)
    job, model = new_job(model=network, optimizer=Adam(0.1))
    samples = samples_of(16, 2)
    engine = inprocess.InProcessEngine(job, samples, None)
    states, copies = [beginning(model, Adam(0.1))], []
    for share in Batches(samples.lengths, 4, SEED).shares(0, 0, 3):
        copies.append(copy.deepcopy(states[-1]))
        states.append(engine.run(states[-1], [share]))
    engine.close()
    for state, before in zip(states[:-1], copies, strict=True):
        assert state.iteration == before.iteration
        np.testing.assert_array_equal(state.weights, before.weights)
        for name, slot in state.slots.items():
            np.testing.assert_array_equal(slot, before.slots[name])
    assert len({state.weights.tobytes() for state in states}) == 4
