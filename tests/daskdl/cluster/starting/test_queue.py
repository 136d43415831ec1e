"""Job queues: from a YAML file to the workers of a queue, through dask-jobqueue."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import dask
import pytest
from distributed import LocalCluster

from daskdl.cluster import connect
from daskdl.cluster.starting.queue import QUEUES, queue_options
from daskdl.errors import MissingExtraError, SettingsError
from tests.daskdl.cluster.test_connection import refused


@pytest.fixture
def queue(tmp_path):
    def queue(text):
        path = tmp_path / "queue.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return queue


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("system: fax\ncores: 4", "expected system: one of slurm, pbs.*found 'fax'$"),
        ("system: [slurm]", r"found \['slurm'\]$"),
        ("cores: 4", "found None$"),
        ("- slurm", r"such as system: slurm, found \['slurm'\]; write one"),
        ("", "found None; write one"),
        ("system: {slurm", "expected a job queue's YAML, found while parsing"),
        (b"\xff\xfe\x00", "expected a job queue's YAML, found "),
        ("system: pbs\njobs: 0", "expected jobs: at least 1, found 0; set how many"),
        ("system: pbs\njobs: many", "expected jobs: at least 1, found 'many'; set how many"),
    ],
)
def test_a_file_of_no_job_queue_is_refused(text, message, queue):
    path = queue(text)
    with pytest.raises(SettingsError, match=message) as caught, connect(path):
        pass
    assert str(caught.value).startswith(f"{path}: expected ")
    assert "\n" not in str(caught.value)


def test_a_missing_job_queue_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="No such file"), connect(tmp_path / "queue.yml"):
        pass


def test_a_job_queue_without_the_extra(queue, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    path = queue("system: slurm\ncores: 1\nmemory: 1GB")
    message = re.escape(f"{path}: ") + r".*slurm jobs.*pip install daskdl\[hpc\]$"
    with pytest.raises(MissingExtraError, match=message), connect(path):
        pass


@pytest.mark.parametrize(
    ("walltime", "lifetime", "stagger"),
    [
        ("01:00:00", "3300s", "150s"),
        ("'12:00:00'", "42900s", "150s"),
        ("12:00:00", "42900s", "150s"),  # YAML reads it as a number of base 60
        ("00:10:00", "540s", "30s"),  # a tenth, if that is less than five minutes
        ("2-01:00:00", "176100s", "150s"),
    ],
)
def test_workers_end_before_their_job(walltime, lifetime, stagger, queue):
    options = queue_options(queue(f"system: slurm\nwalltime: {walltime}"))
    assert options["walltime"] == walltime.strip("'")
    assert options["worker_extra_args"] == [
        *("--lifetime", lifetime),
        *("--lifetime-stagger", stagger),
    ]


def test_worker_arguments_of_the_user_are_kept(queue):
    text = "system: slurm\nwalltime: 01:00:00\nworker_extra_args: [--nthreads, '2']"
    assert queue_options(queue(text))["worker_extra_args"] == ["--nthreads", "2"]
    assert "worker_extra_args" not in queue_options(queue("system: slurm\ncores: 1"))


class Jobs(LocalCluster):
    """A stand-in for dask-jobqueue's classes; each job is a worker in this process."""

    seen: dict

    def __init__(self, cores, scheduler_options, **options):
        if options:
            raise ValueError(f"no such settings:\n{options}")
        stealing, port = (
            dask.config.get("distributed.scheduler.work-stealing"),
            scheduler_options["dashboard_address"],
        )
        type(self).seen = {"cores": cores, "stealing": stealing, "dashboard": port}
        super().__init__(
            n_workers=0,
            threads_per_worker=cores,
            processes=False,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            worker_dashboard_address=None,
        )

    def scale(self, jobs):
        super().scale(jobs)

    def adapt(self, minimum_jobs, maximum_jobs):
        super().adapt(minimum=minimum_jobs, maximum=maximum_jobs)


@pytest.mark.parametrize(("workers", "jobs"), [(None, 2), (1, 1)])
def test_a_job_queue_is_given_its_settings(workers, jobs, queue, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=Jobs))
    path = queue("system: slurm\njobs: 2\ncores: 3")
    with connect(path, workers=workers) as client:
        client.wait_for_workers(jobs, timeout=30)
        assert list(client.nthreads().values()) == [3] * jobs
        assert f"{path}: Dask's dashboard is at {client.dashboard_link}" in caplog.messages
    assert Jobs.seen == {"cores": 3, "stealing": False, "dashboard": ":0"}
    assert client.cluster.status.name == "closed"


def test_settings_that_the_queue_refuses_are_named(queue, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(PBSCluster=Jobs))
    message = refused(str(queue("system: pbs\ncores: 1\nacount: rain")))
    assert "PBSCluster starts, found no such settings: {'acount': 'rain'}; give" in message


def test_dask_jobqueue_has_a_class_for_each_queue():
    dask_jobqueue = pytest.importorskip("dask_jobqueue")
    assert [name for name in QUEUES.values() if not hasattr(dask_jobqueue, name)] == []


def test_the_pages_own_cluster_has_the_settings_of_the_pages_yaml(queue):
    page = (Path(__file__).resolve().parents[4] / "docs" / "howto" / "slurm.md").read_text()
    options = queue_options(queue(re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)[0]))
    (code,) = (one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "SLURM" in one)
    made, adapted = (
        ast.literal_eval(re.sub(r"(\w+)=", r"'\1': ", f"{{{arguments}}}"))
        for arguments in re.findall(r"(?:SLURMCluster|adapt)\((.*?)\n?\)\n", code, re.DOTALL)
    )
    jobs = options.pop("jobs")
    assert options.pop("system") == "slurm"
    assert adapted == {"minimum_jobs": jobs, "maximum_jobs": jobs}
    assert made == options
