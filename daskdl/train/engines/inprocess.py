"""The engine without a cluster: the same steps in the same order, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from itertools import zip_longest
from typing import Any

import numpy as np

from daskdl.cluster.failures import for_caller
from daskdl.collective.plan import fold
from daskdl.data import SampleSet
from daskdl.data.batches import Share
from daskdl.data.on_workers.shards import load_shard
from daskdl.data.on_workers.tasks import on_each, stand_alone
from daskdl.data.partition import Partition
from daskdl.kernels.runtime.memory import empty
from daskdl.kernels.runtime.threads import granted_cores, thread_budget
from daskdl.kernels.vectors.arithmetic import copied, copy_to
from daskdl.predict.evaluation import combined
from daskdl.train.engines import step, whole_batch
from daskdl.train.engines.ahead import Ahead, place_of
from daskdl.train.engines.gradient import add
from daskdl.train.engines.job import Job, evaluate
from daskdl.train.engines.step import State, Vector


class InProcessEngine:
    """Run iterations in this process, shards side by side on its cores.

    With ``overwrite`` :meth:`run` changes the slots of its argument and the weights of its last
    result, which nothing else uses by then. That saves a copy of each.
    """

    group_limit = 1000

    def __init__(
        self,
        job: Job,
        samples: SampleSet,
        validation: SampleSet | None,
        overwrite: bool = False,
    ) -> None:
        self.overwrites = overwrite
        self._latest: Vector | None = None  # weights that this engine has made
        self._job, self._samples, self._validation = job, samples, validation
        self._held: dict[tuple[bool, int], Partition] = {}
        cores = max(1, granted_cores() // job.threads)
        self._threads = min(cores, samples.partitions)
        #: For sums and the update, while no shard is at work; threads do not change their bits.
        self._alone = replace(job, threads=job.threads * self._threads)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="daskdl-shard")
        self._ahead = Ahead(job, self._threads)

    def run(self, state: State, shares: Sequence[Share]) -> State:
        """Return the state after the iterations that ``shares`` describe."""
        slots = dict(state.slots)
        if not self.overwrites:
            slots = {name: copied(slot) for name, slot in slots.items()}
        vector: Vector = self._job.tools().model.vector
        # Where one thread computes all gradients the weights change in its model; those that lie
        # elsewhere are copied into a thread's model before each gradient.
        at_home = self._threads == 1 and not self._job.rounded and vector.size == state.weights.size
        weights = state.weights
        if not self.overwrites or weights is not self._latest:
            weights = vector if at_home else empty(state.weights.size, np.float32)
            copy_to(weights, state.weights)
        state = State(weights, slots, state.iteration)  # which change from here on
        with thread_budget(self._job.threads):  # the tasks' own budgets then change nothing
            for share, following in zip_longest(shares, shares[1:]):
                with for_caller():
                    state = self._iteration(state, share, following)
        if at_home and not self.overwrites:
            return replace(state, weights=copied(state.weights))
        self._latest = state.weights
        return state

    def _iteration(self, state: State, share: Share, following: Share | None) -> State:
        with_samples = [s for s, count in enumerate(share.counts) if count]
        alone = self._threads == len(with_samples) == 1  # no other gradient is added to it
        predicted = None
        draws: dict[int, Any] = {
            s: partial(self._draw, state, share, following, s) for s in with_samples
        }
        if self._job.whole_batch:
            draws = {s: cache(draw) for s, draw in draws.items()}
            of_shard = partial(self._shard, whole_batch.predictions, state, share, draws)
            predicted = self._each(with_samples, of_shard)
        more: dict[str, Any] = {"keep": not alone, "predicted": predicted}
        of_shard = partial(self._shard, step.gradient, state, share, draws, **more)
        parts = self._each(with_samples, of_shard)
        leaves = [parts.get(s) for s in range(len(share.counts))]
        job = self._alone
        roots = fold(leaves, lambda level, shard, a, b: add(a, b, job.rounded, job.threads))
        return step.update(job, state, *roots, overwrite=True, workers=self._threads)

    def _draw(self, state: State, share: Share, following: Share | None, s: int) -> Any:
        after = None
        if following is not None and following.counts[s]:
            after = place_of(state.iteration + 1, following, s)
        place = place_of(state.iteration, share, s)
        return self._ahead.draw(self._partition(False, s), s, place, after)

    def _shard(
        self, function: Any, state: State, share: Share, draws: Any, s: int, **more: Any
    ) -> Any:
        """Compute something of a shard in one iteration."""
        at, start, count = place_of(state.iteration, share, s)
        partition = self._partition(False, s)
        put = self._job, state.weights, partition, at, s, start, count
        return function(*put, draw=draws[s], **more)

    def evaluate(self, state: State, batch_size: int) -> list[float]:
        """Return the mean loss over all validation samples, and each metric of them."""
        assert self._validation is not None
        with thread_budget(self._job.threads), for_caller():
            parts = self._each(
                range(self._validation.partitions),
                lambda s: evaluate(
                    self._job, state.weights, self._partition(True, s), s, batch_size
                ),
            )
            return combined(self._job.tools(), list(parts.values()))

    def forget_state(self) -> None:
        """Do nothing: there is no copy of the state."""

    def close(self) -> None:
        """Release the samples."""
        self._pool.shutdown()
        self._ahead.close()
        self._held.clear()
        self._job.forget()

    def _partition(self, validation: bool, shard: int) -> Partition:
        key = validation, shard
        if key not in self._held:
            samples = self._validation if validation else self._samples
            assert samples is not None
            if stand_alone(samples.recipes):
                self._held[key] = load_shard(samples.recipes[shard], shard)
            else:  # what they have in common is loaded once
                partitions = on_each(samples.recipes, lambda partition, _: partition)
                self._held |= {(validation, s): partition for s, partition in enumerate(partitions)}
        return self._held[key]

    def _each(self, shards: Sequence[int], function: Callable[[int], Any]) -> dict[int, Any]:
        if self._threads == 1:
            return {s: function(s) for s in shards}
        return dict(zip(shards, self._pool.map(function, shards), strict=True))
