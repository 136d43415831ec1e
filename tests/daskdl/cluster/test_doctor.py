"""The doctor reports what a cluster's machines have and can do."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from daskdl.cluster import connect, doctor
from tests.daskdl.clusters import small_client


@pytest.mark.slow
def test_every_machine_of_a_cluster_is_asked():
    with connect("local", workers=2, threads_per_worker=2) as client:
        facts = doctor.diagnosis_of(client)
        assert set(facts["workers"]) == set(client.nthreads())
    assert facts["scheduler"]["packages"] == facts["client"]["packages"]
    for worker in facts["workers"].values():
        assert worker["threads"] == 2
        assert worker["free disk (GB)"] > 0
        assert worker["free memory (GB)"] > 0
        assert 0 < worker["memory limit (GB)"] <= facts["client"]["memory limit (GB)"]
    assert facts["differences"] == []
    network = facts["network"]
    assert {network["from"], network["to"]} == set(facts["workers"])
    assert network["MB/s"] > 1


def test_versions_that_differ_are_named(monkeypatch):
    process = os.getpid()

    def version(package):
        return "9.9" if package == "numpy" and os.getpid() == process else "1.0"

    monkeypatch.setattr(doctor, "_version", version)
    here = {**diagnosis(), "libraries": {"a.so": "openblas 0.3.30, 4 threads"}}
    there = {**here, "packages": ONES, "libraries": {**SAME, "c.so": "openmp None, 9 threads"}}
    differences = doctor._unlike("worker tcp://a", there, here)
    assert differences == ["worker tcp://a: expected numpy 9.9 as here, found 1.0"]
    there["libraries"] = {"c.so": "mkl 2024.2, 4 threads"}
    assert doctor._unlike("worker tcp://a", there, here)[1:] == [
        "worker tcp://a: expected libraries openblas 0.3.30 as here, found mkl 2024.2"
    ]


SAME = {"b.so": "openblas 0.3.30, 1 threads"}
ONES = dict.fromkeys(doctor.PACKAGES, "1.0")


def diagnosis():
    return {**doctor.diagnosis(), "python": "3.11.1"}


def test_one_worker_has_no_network():
    with small_client() as client:
        assert doctor.diagnosis_of(client)["network"] == {}


def test_a_missing_kernel_cache_is_writable(tmp_path: Path):
    assert doctor._folder(tmp_path / "not" / "made") == {
        "folder": str(tmp_path / "not" / "made"),
        "writable": True,
    }


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="has other kernels")
def test_the_kernels_that_openblas_took_are_reported():
    script = "import json, daskdl.cluster.doctor as d; print(json.dumps(d.diagnosis()))"
    environment = {**os.environ, "OPENBLAS_CORETYPE": "Nehalem"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    facts = json.loads(done.stdout)
    assert facts["environment"]["OPENBLAS_CORETYPE"] == "Nehalem"
    taken = [text for text in facts["libraries"].values() if text.startswith("openblas")]
    assert taken
    assert all(" Nehalem, " in text for text in taken)


def test_configuration_inherited_from_dask_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_INTERNAL_INHERIT_CONFIG", "secret")
    monkeypatch.setenv("DASK_DASKDL__THREADS", "2")
    facts = doctor.diagnosis()
    assert facts["environment"]["DASK_DASKDL__THREADS"] == "2"
    assert "secret" not in str(facts)


def test_libraries_of_other_packages_do_not_compute_here() -> None:
    site = Path("site-packages")
    assert doctor._computes_here(site / "numpy.libs/libscipy_openblas64_-8fb3d286.so")
    assert doctor._computes_here(Path("env/lib/libmkl_rt.so.2"))
    assert not doctor._computes_here(site / "opencv_python_headless.libs/libopenblas-r0.so")
