"""Batches follow the speed of the model; percentiles those of all latencies."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.stream.worker.latency import BatchLimit, Histogram


@pytest.mark.parametrize(("microseconds", "expected"), [(10.0, 1024), (500.0, 100), (1e5, 1)])
def test_a_batch_takes_the_time_that_is_wanted(microseconds, expected):
    limit = BatchLimit(1024, 0.05)
    for _ in range(12):
        limit.worked(limit.limit, limit.limit * microseconds * 1e-6)
    assert limit.limit == pytest.approx(expected, rel=0.1)


def test_small_batches_tell_nothing_of_large_ones():
    limit = BatchLimit(1024, 0.05)
    for _ in range(10):
        limit.worked(limit.limit, limit.limit * 1e-5)
    limit.worked(1, 0.04)
    limit.worked(0, 0.04)
    assert limit.limit == 1024


def test_percentiles_are_right_to_a_tenth():
    values = np.random.default_rng(0).lognormal(3, 1.5, 10_000)
    parts = Histogram(), Histogram()
    parts[0].add(values[:3000])
    parts[1].add(values[3000:])
    whole = Histogram([*parts[0].sparse(), *parts[1].sparse()])
    found = np.array(whole.percentiles(50, 95, 99))
    exact = np.percentile(values, [50, 95, 99])
    assert (found >= exact * 0.999).all()
    assert (found <= exact * 1.11).all()


def test_no_latency_at_all():
    assert np.isnan(Histogram().percentiles(50)).all()
    early = Histogram()
    early.add(np.array([-5.0, 1e12]))  # a clock that is behind, and one that is lost
    assert early.counts[0] == early.counts[-1] == 1
