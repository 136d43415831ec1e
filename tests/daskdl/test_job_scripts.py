"""A YAML file becomes the script of a job, for each queue."""

from __future__ import annotations

import re

import pytest

from daskdl.cluster.queue import QUEUES, queue_options


def options_of(tmp_path, text):
    path = tmp_path / "queue.yaml"
    path.write_text(text)
    return queue_options(path)


def test_lsf_says_hours_and_minutes(tmp_path):
    options = options_of(tmp_path, "system: lsf\nwalltime: 12:00")
    assert options["walltime"] == "12:00"
    assert options["worker_extra_args"][:2] == ["--lifetime", "42900s"]


@pytest.mark.parametrize(
    ("system", "walltime", "lines"),
    [
        ("slurm", "02:00:00", ["#SBATCH --cpus-per-task=4", "#SBATCH -t 02:00:00"]),
        ("pbs", "02:00:00", ["#PBS -l select=1:ncpus=4:mem=7630MB", "#PBS -l walltime=02:00:00"]),
        ("lsf", "02:00", ["#BSUB -n 4", "#BSUB -W 02:00"]),
        ("sge", "02:00:00", ["#$ -l h_rt=02:00:00", "#$ -q main"]),
    ],
)
def test_the_job_script_of_each_queue(system, walltime, lines, tmp_path):
    dask_jobqueue = pytest.importorskip("dask_jobqueue")
    options = options_of(
        tmp_path,
        f"system: {system}\ncores: 4\nprocesses: 1\nmemory: 8GB\ninterface: lo\n"
        f"queue: main\nlocal_directory: {tmp_path}\nwalltime: {walltime}\n"
        "job_script_prologue: [module load radar]\n",
    )
    kind = getattr(dask_jobqueue, QUEUES[options.pop("system")]).job_cls
    text = kind(scheduler="tcp://node1:8786", name="a", **options).job_script()
    for line in lines:
        assert re.search(rf"^{re.escape(line)}\s*$", text, re.MULTILINE), text
    for option in (
        "--nthreads 4",
        "--interface lo",
        f"--local-directory {tmp_path}",
        "--lifetime 6900s",
        "--lifetime-stagger 150s",
        "\nmodule load radar\n",
    ):
        assert option in text
