"""Buckets: parts of the gradient that are added up while the backward pass computes the others.

The gradients of the last layers are ready first. A second thread of each member exchanges them,
bucket after bucket from the vector's end, in the same order on all members. Additions follow the
canonical tree, so that the sums have the bits of one exchange at the end.

S. Li et al., PyTorch Distributed: Experiences on Accelerating Data Parallel Training, VLDB 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from daskdl.collective.codec import codec_of
from daskdl.collective.communicator import Communicator
from daskdl.collective.payload import Payload, slice_of
from daskdl.collective.reduction import Reduction
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.kernels.vectors.arithmetic import copy_to, times
from daskdl.nn import Module
from daskdl.tensor import Tensor
from daskdl.train.engines.gradient import Gradient
from daskdl.train.engines.job import Job
from daskdl.train.gang.members import Gang

#: Most buckets of a vector: each is a slice of a member's weights and of its optimizer's state.
MOST = 16

#: Orders that no operation has: a bucket is ready before the first, or after the last.
AT_ONCE, AT_THE_END = 1 << 62, -1


def count_of(n_bytes: int, bucket: int, members: int, tables: bool) -> int:
    """Return the number of buckets of ``n_bytes``, each of at least ``bucket`` bytes.

    ``bucket`` 0 means one bucket. ``tables``: whether rows of tables are exchanged too, whose
    gradients are ready last.
    """
    if members < 2 or tables or not bucket:
        return 1
    return max(1, min(MOST, n_bytes // bucket))


class Buckets:
    """One member's exchange of the gradient's sum over all shards.

    Connections that cannot be interrupted exchange the same messages at the end. The vector has
    ``size`` numbers, each table (rows, C).
    """

    def __init__(
        self,
        job: Job,
        gang: Gang,
        comm: Communicator,
        size: int,
        tables: Sequence[tuple[int, int]] = (),
    ) -> None:
        plans, codec = gang.bucket_plans(comm.rank), codec_of(job.rounded)
        self._reductions = [Reduction(p, size, codec, tables, gang.unit) for p in plans]
        self._slices = [slice_of(plan.span, size, gang.unit) for plan in plans]
        self._comm, self._threads, self._ended = comm, job.threads, False
        self._pool: ThreadPoolExecutor | None = None
        if len(plans) > 1 and comm.interruptible:
            self._pool = ThreadPoolExecutor(1, "daskdl-exchange")
        self._lengths = [sum(s.stop - s.start for s in r.owned) for r in self._reductions]
        self._sums = np.empty(sum(self._lengths) if len(plans) > 1 else 0, np.float32)

    @property
    def early(self) -> bool:
        """Whether something is exchanged before the end of the backward pass."""
        return self._pool is not None

    def begin(self, t: int) -> None:
        """Forget the iteration before ``t``."""
        self._t, self._alone = t, False
        self._remaining, self._work = len(self._reductions), list[Future[Payload]]()
        for reduction in self._reductions:
            reduction.begin()

    def put(self, shard: int, gradient: Gradient | None) -> None:
        """Take a shard's whole gradient, None if it has no samples."""
        payload = None if gradient is None else gradient.payload()
        for bucket, reduction in enumerate(self._reductions):
            # The first bucket has the sums of losses and counts with it.
            rest = None if payload is None else Payload(payload.vector)
            reduction.put(shard, rest if bucket else payload)

    def back(self, shard: int, loss: Tensor, model: Module, count: int) -> bool:
        """Take the gradients of the last shard's loss, and exchange those that are ready.

        All other shards of this member must be put before. The model's own vector gets the
        gradients times ``count``. Returns whether all are finite; after a number that is not,
        nothing more is exchanged.
        """
        joined = model.joined
        waits, remaining, sound = self._waits(loss, model), len(self._slices), True

        def hand_on() -> None:
            nonlocal remaining, sound
            remaining -= 1
            numbers = slice(
                self._slices[remaining].start, min(self._slices[remaining].stop, joined.grad.size)
            )
            if numbers.start < numbers.stop:
                sound &= times(joined.grad[numbers], count, joined.whole_grad[numbers])
            if remaining and sound:
                self._exchange(shard, Payload(joined.whole_grad))

        def passed(order: int) -> None:
            while remaining > 1 and order <= waits[remaining - 1]:
                hand_on()

        loss.backward(passed=passed)
        while remaining:
            hand_on()
        return sound

    def last(self, shard: int, gradient: Gradient) -> None:
        """Take the last shard's loss, counts and seconds, which :meth:`back` could not know."""
        self._reductions[0].put(shard, gradient.payload())

    def total(self) -> Payload:
        """Return the sum over all shards of the numbers that this member owns."""
        self._alone = True  # nobody computes any more
        while self._remaining:
            self._exchange()
        parts = [work.result() for work in self._work]
        if len(parts) == 1:
            return parts[0]
        stop = self._sums.size
        for part, length in zip(parts, reversed(self._lengths), strict=True):
            copy_to(self._sums[stop - length : stop], part.vector)
            stop -= length
        return replace(parts[-1], vector=self._sums)

    def close(self) -> None:
        """End an exchange under way without waiting for peers."""
        self._ended = True
        if self._pool is not None:
            self._comm.interrupt("this member has left")
            self._pool.shutdown(cancel_futures=True)

    def _exchange(self, shard: int = 0, payload: Payload | None = None) -> None:
        """Exchange the next bucket; a payload is this shard's part, which is not put yet."""
        self._remaining -= 1
        if self._pool is not None:
            self._work.append(self._pool.submit(self._reduced, self._remaining, shard, payload))
            return
        done: Future[Payload] = Future()
        done.set_result(self._reduced(self._remaining, shard, payload))
        self._work.append(done)

    def _reduced(self, bucket: int, shard: int, payload: Payload | None) -> Payload:
        if self._ended:
            raise BrokenGangError(f"iteration {self._t}: this member has left")
        reduction = self._reductions[bucket]
        kind = f"reduce bucket {bucket}" if len(self._reductions) > 1 else "reduce"
        with thread_budget(self._threads if self._alone else 1):
            if payload is not None:
                reduction.put(shard, payload)
            return self._comm.reduce_scatter(reduction, self._t, kind)

    def _waits(self, loss: Tensor, model: Module) -> list[int]:
        """Return for each bucket the number of the operation that completes its gradients."""
        first = first_uses(loss)
        waits, start = [AT_ONCE] * len(self._slices), 0
        for parameter in model.parameters():
            if parameter.sparse:
                continue
            stop = start + parameter.data.size
            for bucket, numbers in enumerate(self._slices):
                if parameter.requires_grad and start < numbers.stop and numbers.start < stop:
                    waits[bucket] = min(waits[bucket], first.get(id(parameter), AT_THE_END))
            start = stop
        return waits


def first_uses(result: Tensor) -> dict[int, int]:
    """Return the number of the first use of each tensor that gets a gradient, by its id."""
    first: dict[int, int] = {}
    nodes = [] if result._node is None else [result._node]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        for source in node.sources:
            if isinstance(source, Tensor):
                first[id(source)] = min(first.get(id(source), node.order), node.order)
            elif source is not None and source[0] not in seen:
                seen.add(source[0])
                nodes.append(source[0])
    return first
