"""A PostgreSQL server that is killed in the middle of an epoch, and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import psutil
import pytest

from daskdl.data import SampleSet
from daskdl.data.sources.sql import from_table
from daskdl.errors import TrainingError
from daskdl.nn import Linear, MSELoss
from daskdl.optim import Adam
from daskdl.train import Trainer
from tests.daskdl.data.sources.postgres import PASSWORD, Server
from tests.daskdl.train.runs import Do, digest

psycopg = pytest.importorskip("psycopg")
pytestmark = [pytest.mark.long, pytest.mark.kills, pytest.mark.timeout(600)]

ROWS = 4000


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        with psycopg.connect(running.connection, password=PASSWORD) as connected:
            connected.execute("CREATE TABLE points (id int PRIMARY KEY, a real, b real)")
            connected.execute(
                f"INSERT INTO points SELECT i, sin(i), cos(i) FROM generate_series(1, {ROWS}) i"
            )
        yield running


def samples_of(server: Server) -> SampleSet:
    """Return samples that are read again in each epoch, some rows at a time."""
    table = from_table(
        server.connection, "points", key="id", x=["a"], y=["b"], password=PASSWORD, partitions=40
    )
    return table.stream(4, held="1 kB")


def kill(server: Server) -> None:
    """Kill all processes of a server."""
    data = server.folder / "data" / "postmaster.pid"
    first = psutil.Process(int(data.read_text().splitlines()[0]))
    killed = [first, *first.children(recursive=True)]
    for process in killed:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(killed, 30)


def fitted(samples: SampleSet, **options: object) -> Trainer:
    trainer = Trainer(Linear(1, 1, seed=0), MSELoss(), Adam(1e-2), seed=1)
    trainer.fit(samples, epochs=3, batch_size=100, progress=False, **options)
    return trainer


@pytest.mark.usefixtures("short_groups")
@pytest.mark.parametrize("engine", [None, "graph", "gang"])
def test_a_run_names_the_outage_and_goes_on_by_the_same_command(server, client, tmp_path, engine):
    whole = fitted(samples_of(server), client=False)
    where = {"client": client, "engine": engine} if engine else {"client": False}
    run = {"checkpoint": tmp_path / "run", "checkpoint_every": 5, **where}
    samples, killing = samples_of(server), Do(50, lambda: kill(server))
    with pytest.raises(TrainingError, match=r"DataError: points.*expected to read it from Postgre"):
        fitted(samples, callbacks=[killing], **run)
    assert killing.done
    server.start()
    assert digest(fitted(samples_of(server), **run)) == digest(whole)
    assert np.isfinite(whole.model.flat).all()
