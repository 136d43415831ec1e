"""Clusters on whose workers daskdl is not installed, and schedulers that have no workers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from distributed import Client, LocalCluster

from daskdl.cli import app
from daskdl.cluster import doctor
from daskdl.collective import run as run_together
from daskdl.console import run
from daskdl.errors import ClusterError
from tests.daskdl.train.runs import fit, network, problem

NONE = "import sys; sys.modules['daskdl'] = None"


@pytest.fixture(scope="module")
def bare() -> Iterator[Client]:
    """A worker that cannot import daskdl."""
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            worker_dashboard_address=None,
            preload=[NONE],
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "what"),
    [
        (lambda client: fit(problem(), client=client, engine="gang"), "start of the fit"),
        (lambda client: fit(problem(), client=client, engine="graph"), r"iterations 0 to \d+"),
        (lambda client: run_together(client, len), "collective len"),
    ],
)
def test_a_worker_without_daskdl_is_one_sentence(
    bare: Client, work: Callable[[Client], Any], what: str
) -> None:
    said = rf"^({what}|sending to workers): expected daskdl \S+ on every machine .*, install it"
    with pytest.raises(ClusterError, match=said):
        work(bare)


def test_predictions_say_so_too(bare: Client) -> None:
    with (
        bare.as_current(),
        pytest.raises(ClusterError, match=r"^prediction: expected daskdl"),
    ):
        network().predict(problem())


def test_doctor_names_the_worker(bare: Client) -> None:
    facts = doctor.diagnosis_of(bare)
    (address,) = bare.nthreads()
    said = f"worker {address}: expected daskdl {facts['client']['packages']['daskdl']} as here"
    assert facts["differences"] == [f"{said}, found none; install it there"]
    assert facts["workers"] == {address: {"failed": facts["differences"][0]}}
    assert facts["scheduler"]["packages"] == facts["client"]["packages"]
    json.dumps(facts)


@pytest.mark.slow
def test_a_scheduler_without_workers_is_told_of_and_not_waited_for_long(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: Any
) -> None:
    monkeypatch.setattr(doctor, "WORKERS_WITHIN", 0.2)
    with LocalCluster(
        n_workers=0,
        processes=False,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as cluster:
        address = cluster.scheduler_address
        assert run(app, ["doctor", "--cluster", address]) == 4
    assert f"doctor: waiting up to 0.2 s for 1 workers at {address}, of which 0" in caplog.text
    said = f"doctor: expected 1 workers at {address} within 0.2 s, found 0; start workers"
    assert said in capsys.readouterr().err
