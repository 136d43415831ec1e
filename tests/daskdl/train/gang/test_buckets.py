"""Parts of the gradient are added up while the others are computed, to the same bits."""

from __future__ import annotations

import threading
from typing import Any

import dask
import numpy as np
import pytest

from daskdl import ops
from daskdl.collective.communicator import Communicator
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.errors import SettingsError
from daskdl.nn import BatchNorm, Linear, Module, ReLU, Sequential
from daskdl.tensor import Tensor, op
from daskdl.train.engines import step
from daskdl.train.engines.gradient import Gradient
from daskdl.train.engines.job import Job
from daskdl.train.gang.buckets import Buckets, count_of, first_uses
from daskdl.train.gang.members import Gang
from tests.daskdl.collective.pairs import over_sockets
from tests.daskdl.train.jobs import new_job, samples
from tests.daskdl.train.runs import digest, fit, problem


def network() -> Module:
    return Sequential(
        Linear(3, 40, seed=1), BatchNorm(40), ReLU(), Linear(40, 40, seed=2), Linear(40, 2, seed=3)
    )


def begun(
    comm: Communicator, model: Module | None = None, kind: type[Buckets] = Buckets
) -> tuple[Buckets, Module, int]:
    """Return buckets at their first iteration, their model and the first shard of this rank."""
    model = model or network()
    buckets = kind(new_job()[0], comm.group, comm, model.vector.size)
    buckets.begin(0)
    return buckets, model, comm.shards[0]


def of_shard(job: Job, weights: Any, shard: int, count: int, **options: Any) -> Gradient:
    return step.gradient(job, weights, samples(), (0, 0, 0), shard, shard, count, **options)


def summed(
    comm: Communicator, job: Job, weights: Any, counts: list[int]
) -> tuple[Any, np.ndarray, Any]:
    """Return this rank's slices, the sums of their numbers, and losses and counts of all."""
    assert isinstance(comm.group, Gang)
    size = job.tools().model.vector.size
    buckets = Buckets(job, comm.group, comm, size)
    buckets.begin(0)
    drawn = [s for s in comm.shards if counts[s]]
    for shard in comm.shards:
        if not counts[shard]:
            buckets.put(shard, None)
    for shard in drawn:
        if shard != drawn[-1] or not buckets.early:
            buckets.put(shard, of_shard(job, weights, shard, counts[shard]))
        else:

            def back(*put: Any, shard: int = shard) -> bool:
                return buckets.back(shard, *put)

            buckets.last(shard, of_shard(job, weights, shard, counts[shard], keep=False, back=back))
    total = buckets.total()
    slices = [slice(s.start, s.stop) for r in buckets._reductions for s in r.owned]
    buckets.close()
    return slices, total.vector.copy(), total.sums[:2]


@pytest.mark.slow
@pytest.mark.parametrize("rounded", [0, 1700])
@pytest.mark.parametrize(
    ("owners", "counts"),
    [([0, 1], [3, 4]), ([0, 1, 0, 2, 1], [2, 3, 2, 4, 1]), ([1, 0, 0, 1], [3, 0, 2, 0])],
)
def test_sums_have_the_bits_of_an_exchange_at_the_end(owners, counts, rounded):
    job, model = new_job(model=network())
    job = Job(**{**job.__dict__, "rounded": rounded})
    weights, results = model.vector.copy(), []
    for buckets in (1, 3, 8):
        vector = np.full(weights.size, np.nan, np.float32)
        of_ranks = over_sockets(
            owners, lambda comm: summed(comm, job, weights, counts), buckets=buckets
        )
        for slices, numbers, _ in of_ranks:
            start = 0
            for part in slices:
                stop = start + part.stop - part.start
                vector[part], start = numbers[start:stop], stop
        results.append((vector.tobytes(), [sums for *_, sums in of_ranks]))
        assert np.isfinite(vector).all()
    assert results[0] == results[1] == results[2]


def test_last_layers_are_exchanged_before_the_first_are_computed():
    arrived = threading.Semaphore(0)

    class Waiting(Linear):
        """Goes back only when a bucket of later layers has come to both ranks."""

        def forward(self, x):
            return waits(super().forward(x))

    @op
    def waits(x):
        def backward(dy):
            assert arrived.acquire(timeout=60), "no bucket was exchanged before the end"
            return (dy,)

        return x, backward

    whole = Buckets._reduced

    class Telling(Buckets):
        def _reduced(self, *put):
            result = whole(self, *put)
            if put[0]:
                arrived.release()
            return result

    def of_rank(comm):
        layers = Waiting(3, 40, seed=1), ReLU(), Linear(40, 40, seed=2)
        buckets, model, shard = begun(comm, Sequential(*layers), Telling)
        model.joined.zero_grad()
        loss = ops.sum(model(Tensor(np.ones((2, 3), np.float32))))
        assert buckets.back(shard, loss, model, 2)
        buckets.last(shard, Gradient(model.joined.whole_grad, 1.0, 2, step.Clocks.of(0, 0, 0)))
        loss_of_both = buckets.total().sums[0]
        buckets.close()
        return loss_of_both

    assert over_sockets([0, 1], of_rank, buckets=6) == [2.0, 2.0]


def test_a_parameter_is_ready_after_the_first_operation_that_used_it():
    shared, other = (Tensor(np.ones(2, np.float32), requires_grad=True) for _ in range(2))
    first = ops.exp(shared)
    second = first * other
    loss = ops.sum(second * shared)
    uses, passed = first_uses(loss), []
    assert uses == {id(shared): first._node.order, id(other): second._node.order}
    loss.backward(passed=lambda order: passed.append((order, other.grad is None)))
    assert passed == sorted(passed, reverse=True)
    assert dict(passed)[second._node.order] is False
    assert first_uses(other) == {}


def test_gradients_that_are_not_finite_are_not_exchanged():
    def of_rank(comm):
        buckets, model, shard = begun(comm)
        loss = ops.sum(model(Tensor(np.full((2, 3), np.nan, np.float32))))
        sound = buckets.back(shard, loss, model, 2)
        buckets.close()
        return sound, len(buckets._work)

    assert over_sockets([0, 1], of_rank, buckets=8) == [(False, 0)] * 2


def test_a_member_that_leaves_waits_for_nobody():
    gone = threading.Event()

    def of_rank(comm):
        if comm.rank:
            assert gone.wait(60)
            return
        buckets, model, shard = begun(comm)
        loss = ops.sum(model(Tensor(np.ones((2, 3), np.float32))))
        assert buckets.back(shard, loss, model, 2)
        buckets.close()  # the other has sent nothing
        gone.set()
        with pytest.raises(BrokenGangError, match="bucket 7 0: this member has left"):
            buckets._work[0].result()

    over_sockets([0, 1], of_rank, patience=600.0, buckets=8)


def test_nothing_is_exchanged_after_the_end():
    def of_rank(comm):
        buckets, _, _ = begun(comm)
        buckets.close()
        for shard in comm.shards:
            buckets.put(shard, None)
        with pytest.raises(BrokenGangError) as raised:
            buckets.total()
        return str(raised.value)

    assert over_sockets([0, 1], of_rank, patience=0.5) == 2 * ["iteration 0: this member has left"]


def test_the_number_of_buckets():
    assert count_of(100 << 20, 4 << 20, 2, tables=False) == 16
    assert count_of(9 << 20, 4 << 20, 2, tables=False) == 2
    assert count_of(1 << 20, 4 << 20, 2, tables=False) == 1
    for alone in ({"members": 1}, {"bucket": 0}, {"tables": True}):
        put = {"bucket": 1 << 20, "members": 4, "tables": False, **alone}
        assert count_of(100 << 20, **put) == 1


@pytest.mark.slow
def test_a_fit_has_the_same_bits_with_buckets_and_without(client_of):
    alone = digest(fit(problem(5)))
    for size in (None, "64 B"):
        with dask.config.set({"daskdl.bucket-size": size}):
            assert digest(fit(problem(5), client=client_of(2), engine="gang")) == alone
    with (
        dask.config.set({"daskdl.bucket-size": "much"}),
        pytest.raises(SettingsError, match="bucket-size: expected bytes such as '4 MiB'"),
    ):
        fit(problem(5), client=client_of(2), engine="gang")
