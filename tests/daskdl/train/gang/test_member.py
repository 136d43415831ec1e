"""Members of a gang: their task, their slices and their draws."""

from __future__ import annotations

import sys
from typing import Any

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.collective.codec import round_in_place
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.data import Batches
from daskdl.train.engines.tables import Tables
from daskdl.train.gang.member import run_groups
from daskdl.train.gang.members import Gang, cut, put_together
from daskdl.train.gang.outcome import note_of, noted
from tests.daskdl.train.runs import Do, digest, fit, problem


@pytest.mark.slow
def test_members_that_run_one_group_return_its_state(client, monkeypatch):
    # As behind a gateway, where the driver cannot reach the first member.
    def of_one(*arguments, stays, unit):
        assert stays
        return Gang(*arguments, stays=False, unit=unit)

    monkeypatch.setattr("daskdl.train.gang.engine.Gang", of_one)
    with dask.config.set({"daskdl.group-time": "1 us"}):
        together = fit(problem(), iterations=6, client=client, engine="gang")
    alone = fit(problem(), iterations=6)
    assert digest(together) == digest(alone)
    np.testing.assert_array_equal(together.history["loss"], alone.history["loss"])


def test_a_task_on_another_worker_is_refused(client):
    gang = Gang("g", ("tcp://127.0.0.1:1",), (0,), 1.0)
    task = client.submit(run_groups, None, gang, 0, 0, 0, None, None, pure=False)
    with pytest.raises(BrokenGangError, match=r"worker tcp://127.0.0.1:1 \(shard 0\) is lost"):
        task.result(60)


def test_members_cover_the_vector_and_the_tables_once():
    gang = Gang("g", ("tcp://a:1", "tcp://b:1", "tcp://c:1"), (0, 0, 1, 2, 1), 1.0)
    tables = Tables(("users", "items"), ((90, 6), (1, 7)), 1000)
    covered = [
        i for rank in range(3) for s in gang.slices(rank, tables) for i in range(s.start, s.stop)
    ]
    assert sorted(covered) == list(range(1000 + 90 * 6 + 7))


@given(size=st.integers(1, 400), members=st.integers(1, 7))
def test_a_state_is_cut_and_put_together(size, members):
    weights = np.arange(size, dtype=np.float32)
    slots = {"mean": weights + 1000, "square": weights + 2000}
    gang = Gang("g", tuple(map(str, range(members))), tuple(range(members)), 1.0)
    slices = [gang.slices(rank, Tables((), (), size)) for rank in range(members)]
    parts = [cut(weights, slots, owned) for owned in slices]
    assert sum(sys.getsizeof(p) for p in parts) >= 3 * weights.nbytes
    restored, state = put_together(parts, slices, size)
    np.testing.assert_array_equal(restored, weights)
    assert state.keys() == slots.keys()
    for name, slot in slots.items():
        np.testing.assert_array_equal(state[name], slot)


@pytest.mark.parametrize("shards", [[0, 1, 2, 3], [1, 3]])
def test_notes_restore_the_shares(shards):
    shares = list(Batches([7, 20, 3, 11], 5).shares(2, 1, 6))
    for notes in (noted(note_of(shares), shards), noted(note_of(shares, shards))):
        for share, restored in zip(shares, notes, strict=True):
            assert (restored.epoch, restored.iteration) == (share.epoch, share.iteration)
            np.testing.assert_array_equal(restored.starts, share.starts[shards])
            np.testing.assert_array_equal(restored.counts, share.counts[shards])


@pytest.mark.kills
@pytest.mark.usefixtures("short_groups")
def test_weights_stay_float32_from_group_to_group_and_worker_to_worker(client):
    options: dict[str, Any] = {"wire": "bfloat16", "epochs": 2}
    alone = fit(problem(), **options)
    assert digest(alone) != digest(fit(problem(), epochs=2))
    restart = Do(5, lambda: client.restart_workers([next(iter(client.nthreads()))]))
    assert digest(fit(problem(), client=client, engine="gang", callbacks=[restart], **options)) == (
        digest(alone)
    )
    once = alone.model.flat.copy()
    round_in_place(once, once.size)
    assert (once != alone.model.flat).mean() > 0.9


@pytest.mark.slow
def test_training_still_converges():
    losses = [
        fit(problem(), epochs=30, wire=wire).history["loss"][-7:].mean()
        for wire in ("float32", "bfloat16")
    ]
    first = fit(problem(), iterations=1).history["loss"][0]
    assert losses[1] < first / 2
    assert losses[1] < 1.1 * losses[0]
