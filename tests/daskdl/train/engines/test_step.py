"""The steps of an iteration, and the clocks of their shards."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from daskdl.cluster.failures import TaskError
from daskdl.data.batches import permutation
from daskdl.data.on_workers.shards import load_shard
from daskdl.data.recipe import Arrays
from daskdl.errors import TrainingError
from daskdl.kernels.runtime.threads import threads
from daskdl.metrics import ROCAUC
from daskdl.nn import Linear, MSELoss, Sequential
from daskdl.optim import SGD
from daskdl.tensor import recording
from daskdl.train.engines import step
from daskdl.train.engines.gradient import Clocks, Gradient, add
from daskdl.train.engines.job import evaluate
from daskdl.train.engines.step import State
from daskdl.train.fit.trial import check_sample
from tests.daskdl.train.jobs import N, by_hand, new_job, raising, samples


def of(value: float, n: int = 1) -> Gradient:
    return Gradient(np.full(8, value, np.float32), value, n, Clocks.of(value, 2.0, 0.0))


# --- gradient


def test_a_gradient_is_the_sum_over_its_samples():
    job, model = new_job()
    gradient = step.gradient(job, model.flat, samples(), (6, 2, 1), 3, 4, 5)
    chosen = permutation(7, 2, 3, N)[4:9]
    assert len(set(chosen)) == 5
    loss, expected = by_hand(model, *samples().take(chosen).values())
    np.testing.assert_allclose(gradient.vector, expected, rtol=1e-5, atol=1e-6)
    assert gradient.loss == pytest.approx(loss, rel=1e-6)
    assert gradient.samples == 5
    assert min(gradient.seconds) >= 0
    other = Linear(3, 2, seed=5)  # of other weights
    elsewhere = step.gradient(job, other.flat, samples(), (0, 0, 0), 0, 0, N)
    _, expected = by_hand(other, *samples().arrays.values())
    np.testing.assert_allclose(elsewhere.vector, expected, rtol=1e-5, atol=1e-6)
    again = step.gradient(job, model.flat, samples(), (6, 2, 1), 3, 4, 5)
    np.testing.assert_array_equal(again.vector, gradient.vector)  # nothing was left in the model
    assert again.vector is not gradient.vector


drawn: list[float] = []


def drawing(batch: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    drawn.append(rng.random())
    return batch


def test_draws_of_functions_depend_on_epoch_iteration_and_shard_only():
    job, model = new_job(functions=(drawing,))
    drawn.clear()
    for at, shard in [
        ((9, 1, 2), 0),
        ((5, 1, 2), 0),
        ((9, 2, 2), 0),
        ((9, 1, 3), 0),
        ((9, 1, 2), 1),
    ]:
        step.gradient(job, model.flat, samples(), at, shard, 0, 2)
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 4


seen: list[tuple[int, bool]] = []


def looking(prediction: Any, target: Any) -> Any:
    seen.append((threads(), recording()))
    return MSELoss()(prediction, target)


def test_a_task_keeps_to_its_thread_budget():
    job, model = new_job(looking, threads=3)
    seen.clear()
    before = threads()
    step.gradient(job, model.flat, samples(), (0, 0, 0), 0, 0, 4)
    evaluate(job, model.flat, samples(), 0, 100)
    check_sample(job, samples().take(np.arange(1)))
    assert seen == [(3, True), (3, False), (3, True)]
    assert threads() == before


# --- sums and updates


def test_a_sum_changes_neither_part():
    a, b = of(2.0, 3), of(5.0, 4)
    total = add(a, b)
    np.testing.assert_array_equal(total.vector, 7)
    assert (total.loss, total.samples, total.seconds) == (7.0, 7, (7.0, 4.0, 0.0, 7.0, 2))
    np.testing.assert_array_equal(a.vector, 2)
    np.testing.assert_array_equal(b.vector, 5)


def test_an_update_takes_the_mean_over_samples():
    job, _ = new_job(optimizer=SGD(0.5, momentum=0.5))
    state = State(np.ones(8, np.float32), {"velocity": np.full(8, 4, np.float32)}, 12)
    after = step.update(job, state, of(6.0, 2), of(10.0, 6))
    np.testing.assert_array_equal(after.weights, 1 - 0.5 * (0.5 * 4 + 16 / 8))
    np.testing.assert_array_equal(after.slots["velocity"], 0.5 * 4 + 2)
    assert after.iteration == 13
    (record,) = after.records
    assert (record.loss, record.samples, record.data, record.idle) == (2.0, 8, 8.0, 2.0)
    np.testing.assert_array_equal(state.weights, 1)
    np.testing.assert_array_equal(state.slots["velocity"], 4)
    assert step.update(job, after, of(1.0)).records[0] is record


@pytest.mark.parametrize("loss", [np.nan, np.inf, -np.inf])
def test_a_loss_that_is_not_finite_ends_the_run(loss):
    job, _ = new_job()
    state = State(np.ones(8, np.float32), {}, 12)
    with pytest.raises(TrainingError, match=f"iteration 12: expected a finite loss, found {loss}"):
        step.update(job, state, replace(of(1.0), loss=loss))


updates: list[int] = []


class Counting(SGD):
    def update(self, weights: Any, gradient: Any, state: Any, iteration: int, **how: Any) -> Any:
        updates.append(iteration)
        return super().update(weights, gradient, state, iteration, **how)


def test_weights_and_state_of_a_worker_are_computed_once():
    job, _ = new_job(optimizer=Counting(0.5))
    state = State(np.ones(8, np.float32), {}, 3)
    updates.clear()
    weights = step.next_weights(job, 1, state, of(1.0))
    after = step.next_state(job, 1, state, of(1.0))
    assert after.weights is weights
    assert step.weights_of(after) is weights
    assert updates == [3]
    again = step.next_weights(job, 2, state, of(1.0))  # another attempt computes them anew
    assert updates == [3, 3]
    np.testing.assert_array_equal(again, weights)
    other, _ = new_job(optimizer=Counting(0.25))
    assert step.next_weights(other, 2, state, of(1.0))[0] == 0.75


# --- errors


def test_an_error_says_where_it_happened():
    class Recipe:
        def load(self):
            raise OSError("gone")

    job, model = new_job(raising)
    weights, partition = model.flat, samples()
    state = State(weights, {}, 4)
    wrong, _ = new_job(optimizer=Linear(1, 1))
    for where, task in {
        "iteration 9 (epoch 2), shard 3": lambda: step.gradient(
            job, weights, partition, (9, 2, 1), 3, 0, 2
        ),
        "validation, shard 3": lambda: evaluate(job, weights, partition, 3, 4),
        "shard 3: its samples cannot be loaded": lambda: load_shard(Recipe(), 3),
        "iteration 4, update": lambda: step.update(wrong, state, of(1.0)),
    }.items():
        with pytest.raises(TaskError) as raised:
            task()
        assert raised.value.args[0] == where
        assert raised.value.args[1] is raised.value.__cause__


def test_what_travels_has_the_size_of_its_arrays():
    state = State(np.ones(1000, np.float32), {"m": np.ones(500, np.float32)}, 0)
    assert state.nbytes == 6000
    assert 6000 <= sys.getsizeof(state) < 7000
    assert sys.getsizeof(of(1.0)) >= 32
    job, model = new_job(metrics=(ROCAUC(),), model=Sequential())
    assert sys.getsizeof(job) >= len(job.payload)
    x = np.linspace(0, 1, 1000, dtype=np.float32)
    data = Arrays({"x": x, "y": np.round(x)})
    assert sys.getsizeof(evaluate(job, model.flat, data, 0, 100)) >= 24 * 1000


def test_waiting_for_the_slowest_shard_is_idle():
    quick, slow = Clocks.of(0.5, 1.0, 1.5), Clocks.of(0.5, 2.0, 3.5)
    both = quick.plus(slow)
    assert both == slow.plus(quick)
    assert (both.longest, both.shards) == (6.0, 2)
    means = both.means()
    assert means == {"data": 0.5, "forward": 1.5, "backward": 2.5, "idle": 1.5}
    assert sum(means.values()) == slow.longest


def test_a_worker_computes_its_shards_in_turn():
    of_four = Clocks.of(0.5, 1.0, 1.5)
    for _ in range(3):
        of_four = of_four.plus(Clocks.of(0.5, 1.0, 1.5))
    assert of_four.means(2) == {"data": 1.0, "forward": 2.0, "backward": 3.0, "idle": 0.0}
    assert of_four.means(8) == of_four.means()


def test_one_shard_waits_for_none():
    assert Clocks.of(0.25, 0.5, 0.5).means()["idle"] == 0
    three = Clocks.of(0.1, 0.2, 0.3).plus(Clocks.of(0.3, 0.2, 0.1)).plus(Clocks.of(0.2, 0.2, 0.2))
    assert three.means()["idle"] == pytest.approx(0)
