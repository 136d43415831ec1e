"""A lazy prediction goes on without a worker that is stopped, by Dask's own time for it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

from daskdl import nn
from daskdl.cluster import connect
from daskdl.cluster.starting.workers import TTL, patience


def test_a_setting_of_the_users_own_is_kept() -> None:
    assert patience() == {TTL: "1 minute"}
    for own in ("20 s", None):
        with dask.config.set({TTL: own}):
            assert patience() == {}


def _stop_once(x: np.ndarray[Any, Any], marker: Path) -> np.ndarray[Any, Any]:
    """Return x; who is first to see the number 300 is stopped."""
    if 300 in x:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return x
        os.kill(os.getpid(), signal.SIGSTOP)
    return x


@pytest.mark.long  # on a busy machine a shorter time is that of workers that are only slow
@pytest.mark.timeout(600)
def test_results_come_although_a_worker_is_stopped_in_its_task(tmp_path: Path) -> None:
    x = np.arange(512, dtype=np.float32).reshape(256, 2)
    model = nn.Linear(2, 3, seed=0)
    stopping = partial(_stop_once, marker=tmp_path / "stopped")
    with dask.config.set({TTL: "20 s"}), connect("local", workers=2) as client:
        lazy = da.from_array(x, chunks=(32, 2)).map_blocks(stopping, dtype=x.dtype)
        found = client.compute(model.predict(lazy)).result(300)
    assert (tmp_path / "stopped").exists()
    np.testing.assert_array_equal(found, model.predict(x))
