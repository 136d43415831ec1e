"""Clusters that others make: objects, clients, and classes that a YAML names."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from distributed import Client

from daskdl import SampleSet, Trainer, connect
from daskdl.cluster.starting import others
from daskdl.errors import ClusterError, MissingExtraError, SettingsError
from daskdl.metrics import Accuracy
from daskdl.nn import CrossEntropyLoss, Linear
from daskdl.optim import SGD
from tests.daskdl.clusters import small

YAML = """system: distributed:LocalCluster
processes: false
n_workers: 1
threads_per_worker: 1
dashboard_address: 127.0.0.1:0
scheduler_kwargs: {dashboard: false}
worker_dashboard_address: null
"""


class Maker:
    """A user's class: no subclass of Dask's Cluster, but with the same interface."""

    asynchronous = False

    def __init__(self, name="one", **options):
        if name == "bare":
            raise RuntimeError("it did not start") from ImportError("no asyncmaker")
        if name != "one":
            raise RuntimeError(f"no such place:\n{name}")
        self._cluster = small()
        self.scheduler_address = self._cluster.scheduler_address
        self.status = "running"

    def scale(self, n):
        self._cluster.scale(n)

    def close(self):
        self._cluster.close()
        self.status = "closed"


def no_cluster():
    return 3


@pytest.fixture(scope="module")
def cluster():
    with small() as made:
        yield made


def test_a_cluster_object_trains_evaluates_predicts_and_stays(cluster):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 4)).astype(np.float32)
    samples = SampleSet.from_arrays(x=x, y=(x[:, 0] > 0).astype(np.int64), partitions=2)
    here = Linear(4, 2)
    there = copy.deepcopy(here)
    Trainer(here, CrossEntropyLoss(), SGD(0.5)).fit(samples, epochs=2, batch_size=16)
    with connect(cluster, workers=2) as client:
        client.wait_for_workers(2, timeout=60)
        Trainer(there, CrossEntropyLoss(), SGD(0.5)).fit(
            samples, epochs=2, batch_size=16, client=client
        )
        scores = there.evaluate(samples, [Accuracy()], client=client)
        predicted = there.predict(samples).compute()
    assert client.status == "closed"
    assert cluster.status.name == "running"
    assert there.flat.tobytes() == here.flat.tobytes()
    assert scores == here.evaluate(samples, [Accuracy()])
    assert np.asarray(predicted).shape == (64, 2)


def test_a_client_is_used_as_it_is(cluster):
    with Client(cluster) as mine:
        with connect(mine) as client:
            assert client is mine
        assert mine.status == "running"
        with pytest.raises(SettingsError, match=r"workers: expected .* found Client; scale its"):
            connect(mine, workers=2).__enter__()


def test_a_class_with_the_interface_of_a_cluster_will_do():
    made = Maker()
    try:
        with connect(made) as client:
            assert client.submit(lambda: 7).result() == 7
    finally:
        made.close()
    with pytest.raises(ClusterError, match="expected a running Maker, found it closed; start"):
        connect(made).__enter__()


def test_a_class_is_named_in_yaml_and_its_cluster_ends(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(YAML + "jobs: 2\n")
    with connect(path) as client:
        client.wait_for_workers(2, timeout=60)
        made = client.cluster
    assert made.status.name == "closed"
    with connect(path, workers=1) as client:
        assert len(client.nthreads()) >= 1


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("no_such_package_of_mine:C", MissingExtraError, "pip install no-such-package-of-mine$"),
        ("distributed:LocalClutser", SettingsError, "found no 'LocalClutser' in distributed; see"),
        (f"{__name__}:no_cluster", SettingsError, "no_cluster, which makes int; name another"),
        (
            f"{__name__}:Maker\nname: two",
            ClusterError,
            "Maker starts, found .*no such place: two; see whether it can be reached from here",
        ),
        (f"{__name__}:Maker\nname: bare", ClusterError, "not start; install what it needs$"),
        (f"{__name__}:no_cluster\nsize: 3", ClusterError, "size.*; give the keyword arguments"),
        ("distributed:", SettingsError, "or module:Class, found 'distributed:'"),
        ("distributed:LocalCluster\njobs: 0", SettingsError, "expected jobs: at least 1, found 0"),
    ],
)
def test_a_system_that_makes_no_cluster_is_refused(tmp_path, text, kind, message):
    path = tmp_path / "cluster.yaml"
    path.write_text(f"system: {text!r}\n" if "\n" not in text else _lines(text))
    with pytest.raises(kind, match=message) as caught:
        connect(path).__enter__()
    assert str(caught.value).startswith(f"{path}: expected ")
    assert "\n" not in str(caught.value)


def _lines(text):
    system, more = text.split("\n")
    return f"system: {system!r}\n{more}\n"


def test_another_object_is_refused():
    with pytest.raises(SettingsError, match=r"a Dask cluster or a client, found 7; give one"):
        connect(7).__enter__()


def test_an_asynchronous_cluster_is_refused(cluster):
    class Asynchronous:
        asynchronous, status, scheduler_address = True, "running", cluster.scheduler_address

    assert others.is_cluster(Asynchronous())
    with pytest.raises(SettingsError, match="found Asynchronous with asynchronous=True; make it"):
        connect(Asynchronous()).__enter__()
