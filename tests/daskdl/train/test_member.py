from __future__ import annotations

from typing import Any

import dask
import numpy as np
import pytest
from distributed import Client

from daskdl.collective.errors import BrokenGangError
from daskdl.train.member import run_groups
from daskdl.train.members import Gang
from tests.daskdl.train.runs import digest, fit, problem


def test_members_that_are_asked_for_one_group_return_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As behind a gateway, where the driver cannot speak to the first member.
    def of_one(*arguments: Any, stays: bool, unit: int) -> Gang:
        assert stays
        return Gang(*arguments, stays=False, unit=unit)

    monkeypatch.setattr("daskdl.train.gang.Gang", of_one)
    with dask.config.set({"daskdl.group-time": "1 us"}):
        together = fit(problem(), iterations=6, client=client, engine="gang")
    alone = fit(problem(), iterations=6)
    assert digest(together) == digest(alone)
    np.testing.assert_array_equal(together.history["loss"], alone.history["loss"])


def test_a_task_that_was_moved_does_not_take_its_place(client: Client) -> None:
    gang = Gang("g", ("tcp://127.0.0.1:1",), (0,), 1.0)
    task = client.submit(run_groups, None, gang, 0, 0, 0, None, None, pure=False)
    with pytest.raises(BrokenGangError, match=r"worker tcp://127.0.0.1:1 \(shard 0\) is lost"):
        task.result(60)
