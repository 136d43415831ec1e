"""The manifest of docs/howto for Kubernetes is what dask-kubernetes' operator takes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import yaml

HOWTO = Path(__file__).resolve().parents[3] / "docs" / "howto"
MANIFEST = yaml.safe_load((HOWTO / "kubernetes.yaml").read_text())
CRD = "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"


def strict(schema):
    """Return a schema that refuses unknown names, which a Kubernetes drops without a word."""
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
