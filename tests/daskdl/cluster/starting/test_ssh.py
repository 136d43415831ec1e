"""Clusters over SSH and on Kubernetes, as their how-tos start them."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from daskdl import SampleSet, Trainer, connect
from daskdl.nn import CrossEntropyLoss, Linear
from daskdl.optim import SGD

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def server(tmp_path):
    """Start an sshd that accepts one key; yield its port."""
    pytest.importorskip("asyncssh")
    if SSHD is None:
        pytest.skip("no sshd here")
    for name in ("key", "host"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "Port": port,
        "ListenAddress": "127.0.0.1",
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "key.pub",
        "StrictModes": "no",
        "PidFile": "none",
    }
    (tmp_path / "config").write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
    process = subprocess.Popen([SSHD, "-D", "-f", tmp_path / "config"], stderr=subprocess.DEVNULL)
    yield port
    process.terminate()
    process.wait()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of asyncssh
def test_a_yaml_of_hosts_trains_to_the_bits_of_one_process(server, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    options = {"port": server, "client_keys": [str(tmp_path / "key")], "known_hosts": None}
    path = tmp_path / "ssh.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "system": "distributed:SSHCluster",
                "hosts": ["127.0.0.1"] * 2,
                "connect_options": options,
                "worker_options": {"nthreads": 1, "n_workers": 2},
                "scheduler_options": {"dashboard_address": "127.0.0.1:0"},
                "remote_python": str(python),
            }
        )
    )
    x = np.random.default_rng(0).normal(size=(64, 4)).astype(np.float32)
    samples = SampleSet.from_arrays(x=x, y=(x[:, 0] > 0).astype(np.int64), partitions=2)
    weights = []
    with connect(path) as client:
        client.wait_for_workers(2, timeout=60)
        for one in (client, False):
            model = Linear(4, 2, seed=1)
            trainer = Trainer(model, CrossEntropyLoss(), SGD(0.5))
            trainer.fit(samples, epochs=2, batch_size=16, client=one, progress=False)
            weights.append(model.flat.tobytes())
    assert weights[0] == weights[1]


HOWTO = ROOT / "docs" / "howto"
MANIFEST = yaml.safe_load((HOWTO / "kubernetes.yaml").read_text())
CRD = "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"


def strict(schema):
    """Return a schema that refuses unknown names, which Kubernetes drops silently."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(one) for name, one in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        made.setdefault("additionalProperties", False)
    return made


def test_the_operators_schema_takes_the_manifest():
    jsonschema = pytest.importorskip("jsonschema")
    spec = importlib.util.find_spec("dask_kubernetes")
    if spec is None or spec.origin is None:
        pytest.skip("dask-kubernetes is not installed")
    definition = yaml.safe_load((Path(spec.origin).parent / CRD).read_text())
    (version,) = definition["spec"]["versions"]
    group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
    assert MANIFEST["apiVersion"] == f"{group}/{version['name']}"
    assert MANIFEST["kind"] == kind
    schema = strict(version["schema"]["openAPIV3Schema"])
    for name, sort in {"apiVersion": "string", "kind": "string", "metadata": "object"}.items():
        schema["properties"].setdefault(name, {"type": sort})
    jsonschema.Draft202012Validator(schema).validate(MANIFEST)
    MANIFEST["spec"]["worker"]["spec"]["containers"][0]["imagge"] = "x"
    with pytest.raises(jsonschema.ValidationError, match="imagge"):
        jsonschema.Draft202012Validator(schema).validate(MANIFEST)
    del MANIFEST["spec"]["worker"]["spec"]["containers"][0]["imagge"]


def test_names_and_ports_of_the_manifest_fit_together():
    name, scheduler = MANIFEST["metadata"]["name"], MANIFEST["spec"]["scheduler"]
    assert scheduler["service"]["selector"]["dask.org/cluster-name"] == name
    ports = {
        port["name"]: port["containerPort"] for port in scheduler["spec"]["containers"][0]["ports"]
    }
    for port in scheduler["service"]["ports"]:
        assert ports[port["targetPort"]] == port["port"]
    worker = MANIFEST["spec"]["worker"]["spec"]
    (container,) = worker["containers"]
    volumes = {volume["name"] for volume in worker["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    cores = container["args"][container["args"].index("--nthreads") + 1]
    assert cores == container["resources"]["limits"]["cpu"]
    text = (HOWTO / "clusters.md").read_text()
    assert f"tcp://{name}-scheduler:8786" in text
    assert container["image"] in text
