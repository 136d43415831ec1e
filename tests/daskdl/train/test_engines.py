from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from distributed import Client

from daskdl.errors import SettingsError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import SGD
from daskdl.train.engines import FEW_WORKERS, SMALL_MODEL, choose, make_engine
from daskdl.train.gang import GangEngine
from daskdl.train.graph import GraphEngine
from daskdl.train.inprocess import InProcessEngine
from daskdl.train.job import Tools, pack
from tests.daskdl.train.runs import fit, problem


@pytest.mark.parametrize(
    ("workers", "model_bytes", "engine"),
    [
        (1, 10 * SMALL_MODEL, "graph"),
        (2, SMALL_MODEL, "graph"),
        (2, SMALL_MODEL + 4, "gang"),
        (FEW_WORKERS, 100, "graph"),
        (FEW_WORKERS + 1, 100, "gang"),
    ],
)
def test_auto_looks_at_workers_and_weights(workers: int, model_bytes: int, engine: str) -> None:
    assert choose("auto", workers, model_bytes) == engine
    assert choose("graph", workers, model_bytes) == "graph"
    assert choose("gang", workers, model_bytes) == "gang"


def test_an_engine_that_is_none_is_refused_before_anything_else() -> None:
    with pytest.raises(SettingsError, match="engine: expected one of auto, graph, gang, found 'g'"):
        fit(problem(), engine="g")


def test_the_engine_is_the_chosen_one(client_of: Callable[[int], Client]) -> None:
    job = pack(Tools(Linear(2, 2, seed=0), MSELoss(), SGD(0.1)), seed=0, threads=1)

    def made(engine: str, client: Client | None, model_bytes: int = 24) -> type[Any]:
        return type(make_engine(engine, client, job, problem(), None, model_bytes))

    assert made("gang", None) is InProcessEngine
    client = client_of(2)
    assert made("auto", client) is GraphEngine
    assert made("gang", client) is GangEngine
    assert made("auto", client, 1 << 30) is GangEngine
