"""The command line of daskdl, and its completion in a shell."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer._completion_shared import get_completion_script

from daskdl import nn
from daskdl.cli import app, main
from daskdl.console import run


def test_doctor_prints_what_decides_speed_as_json(capsys):
    assert run(app, ["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"numpy", "numba", "dask", "daskdl"} <= facts["packages"].keys()
    assert facts["cores"] >= facts["thread budget"] >= 1
    assert facts["memory limit (GB)"] > 0
    assert facts["kernel cache"]["writable"] is True
    assert any("openblas" in line or "mkl" in line for line in facts["libraries"].values())


def test_doctor_prints_the_same_as_text(capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert run(app, ["doctor"]) == 0
    out = capsys.readouterr().out
    assert "python: 3." in out
    assert "  numpy: " in out
    assert "  OMP_NUM_THREADS: 3" in out


@pytest.mark.slow
def test_doctor_reports_on_a_cluster(capsys):
    assert run(app, ["doctor", "--cluster", "local", "--workers", "2"]) == 0
    out = capsys.readouterr().out
    assert "differences: none: all versions are the client's" in out
    assert "  MB/s: " in out


def test_doctor_of_a_cluster_that_is_not_there(capsys):
    assert run(app, ["doctor", "--cluster", "nowhere.json"]) == 4
    assert capsys.readouterr().err.startswith("daskdl: nowhere.json: expected a scheduler file")


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.safetensors"
    nn.save(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), path, {"lead": 60})
    return path


def test_show_prints_the_tree_and_the_numbers(model, capsys):
    assert run(app, ["show", str(model)]) == 0
    out = capsys.readouterr().out
    for line in ("parameters: 21", "  lead: 60", "    (layers.0): Linear(3, 4)"):
        assert line in out.splitlines()


def test_show_for_machines(model, capsys):
    assert run(app, ["show", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["parameters"] == 21
    assert facts["metadata"] == {"lead": 60}
    assert facts["shapes"]["layers.2.weight"] == [1, 4]


@pytest.mark.parametrize("content", [None, b"", b"not a model"])
def test_show_of_no_model_ends_with_3_and_its_name(content, tmp_path, capsys):
    path = tmp_path / "m.safetensors"
    if content is not None:
        path.write_bytes(content)
    assert run(app, ["show", str(path)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"daskdl: {path}: ")
    assert err.count("\n") == 1


def test_main_runs_the_process_arguments(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["daskdl", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("daskdl ")


def test_scaling_is_measured_as_the_options_say(monkeypatch, tmp_path):
    from daskdl.scaling import command
    from daskdl.scaling.command import Settings

    calls = []
    monkeypatch.setattr(command, "run", lambda *arguments: calls.append(arguments))
    path = tmp_path / "s.json"
    asked = "--model lenet --workers 8 --first 2 --threads 3 --batch-size 4 --total-batch 5"
    asked += " --seconds 6 --repeat 7 --engine gang --wire bfloat16 --simulate 1.5 --megabytes 9"
    assert run(app, ["bench", "scaling", *asked.split(), "--json", str(path)]) == 0
    assert run(app, ["bench", "scaling", "--cluster", "queue.yaml", "--no-progress"]) == 0
    settings = Settings(
        "lenet", workers=8, first=2, threads=3, batch_size=4, total_batch=5, seconds=6, repeat=7,
        engine="gang", wire="bfloat16", simulate=1.5, megabytes=9,
    )  # fmt: skip
    assert calls == [
        (settings, path, None, True),
        (Settings("resnet50", cluster="queue.yaml"), None, None, False),
    ]


def test_scaling_of_an_unknown_model_ends_with_2_and_one_sentence(capsys):
    assert run(app, ["bench", "scaling", "--model", "vgg"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("daskdl: model: expected one of lenet, ")
    assert err.endswith("found 'vgg'; name one of these\n")


ROOT = Path(__file__).resolve().parents[2]
#: Scripts that print the words that each shell offers after a line.
ASK = {
    "bash": (
        "{script}\nCOMP_WORDS=({line}); COMP_CWORD={last}; COMP_LINE='{line}'\n"
        '_{program}_completion {program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    ),
    "zsh": (
        "compdef() {{ }}; _arguments() {{ print -l -- $@ }}; _files() {{ }}\n"
        "{script}\nwords=({line}); CURRENT={count}\n_{program}_completion"
    ),
    "fish": "{script}\ncomplete -C '{line}'",
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ASK)
@pytest.mark.parametrize(
    ("line", "offered", "not_offered"),
    [
        ("daskdl s", {"show", "stream"}, {"doctor"}),
        ("daskdl stream --ex", {"--exactly-once"}, {"--echo"}),
        ("nowcast tr", {"train"}, {"verify"}),
    ],
)
def test_a_shell_completes(shell, line, offered, not_offered, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    program, words = line.split()[0], line.split()
    wrapper = tmp_path / program
    code = f"import sys; from {program}.cli import main; sys.exit(main())"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    wrapper.chmod(0o755)
    script = get_completion_script(
        prog_name=program, complete_var=f"_{program.upper()}_COMPLETE", shell=shell
    )
    asked = ASK[shell].format(
        script=script, line=line, program=program, last=len(words) - 1, count=len(words)
    )
    run = subprocess.run(
        [shell, "-c", asked],
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    for word in offered:
        assert word in run.stdout, run.stderr
    for word in not_offered:
        assert word not in run.stdout


@pytest.mark.parametrize("program", ["daskdl", "nowcast"])
def test_help_says_how_to_install_it(program):
    code = f"import sys; from {program}.cli import main; sys.exit(main())"
    run = subprocess.run(
        [sys.executable, "-c", code, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--install-completion" in run.stdout
