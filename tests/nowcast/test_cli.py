"""The command line as a shell sees it: help, defaults, streams, exit codes, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

from daskdl.console import run
from nowcast.cli import app, main
from nowcast.ingest.settings import IngestSettings
from nowcast.model.folder import load_model
from tests.nowcast.commands.test_train import FIXED
from tests.nowcast.model.test_train import write_store
from tests.nowcast.stores import translation

#: A job in the background starts with Ctrl-C ignored; this program handles it again.
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from nowcast.cli import main
sys.exit(main())
"""
COMMANDS = ("ingest", "train", "predict", "verify", "plot", "demo")


def parameters(command: str) -> dict[str, object]:
    group = typer.main.get_command(app)
    return {p.name: p.default for p in group.commands[command].params}  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_names_its_options(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert run(app, [command, "--help"]) == 0
    text = capsys.readouterr().out
    for name in parameters(command).keys() - {"help"}:
        option = {"as_json": "--json", "assign": "--set", "start": "--from", "stop": "--to"}
        shown = option.get(name, f"--{name.replace('_', '-')}")
        assert shown in text or name.upper() in text.upper(), name


@pytest.mark.parametrize("command", [
    ["cells", "x", "--out", "x.csv", "--smooth-km"], ["ingest", "x", "--out", "x", "--noise"],
    ["train", "x", "--out", "x", "--epochs"],
    ["plot", "x", "--out", "x.png", "--threshold"], ["simulate", "--out", "x", "--hours"],
], ids=lambda words: words[0])  # fmt: skip
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_no_number_of_a_command_is_nan_or_inf(tmp_path, monkeypatch, capsys, command, value):
    monkeypatch.chdir(tmp_path)
    assert run(app, [*command, value]) == 2
    sentence = f"nowcast: {command[-1]}: expected a finite number, found {value}\n"
    assert capsys.readouterr().err == sentence
    assert not list(tmp_path.iterdir())


def test_help_names_every_command(capsys):
    assert run(app, ["--help"]) == 0
    text = capsys.readouterr().out
    assert all(command in text for command in COMMANDS)


def test_defaults_follow_the_library():
    defaults, settings = parameters("ingest"), IngestSettings()
    for name in ("spacing", "sweeps", "combine", "zr", "hail_cap", "noise", "rhohv", "step"):
        assert defaults[name] == getattr(settings, name), name
    assert IngestSettings.of(size=defaults["size"]).size == settings.size


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["train"], ["train", "a", "--nothing"], ["ingest", "a", "--out", "b", "--workers",
     "0"], ["ingest", "a", "--out", "b", "--sweeps", "two"]],
)  # fmt: skip
def test_usage_errors_end_with_2(arguments, capsys):
    assert run(app, arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Usage: nowcast" in err


def test_main_runs_the_process_arguments(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["nowcast", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("nowcast ")


@pytest.mark.slow
def test_a_missing_cluster_ends_with_4(tmp_path, capsys):
    store = write_store(tmp_path / "rain.zarr", translation(12, 0, 3, 32))
    arguments = ["train", str(store), "--out", str(tmp_path / "m"), "--cluster"]
    for address in ("tcp://127.0.0.1", str(tmp_path / "none.json")):
        assert run(app, [*arguments, address]) == 4
        err = capsys.readouterr().err
        assert address in err
        assert err.count("\n") == 1
    assert run(app, [*arguments, "the cluster"]) == 2
    assert "found 'the cluster'" in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def training(store: Path, out: Path, epochs: int) -> list[str]:
    chosen = (part for one in FIXED for part in ("--set", one))
    command = ["train", str(store), "--out", str(out), "--lead", "20min", "--epochs", str(epochs)]
    return [*command, *chosen]


def started(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def wait_for_a_checkpoint(process: subprocess.Popen[str], out: Path) -> None:
    limit = time.monotonic() + 120
    while not list((out / "training").glob("step-*")):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < limit, "no checkpoint"
        time.sleep(0.01)


@pytest.mark.kills
def test_sigterm_ends_training_with_143_and_leaves_nothing_behind(tmp_path):
    """Only the driver gets the signal, as from kill; it also removes the nannies' semaphores."""
    store = write_store(tmp_path / "rain.zarr", translation(40, 0, 3, 48))
    out = tmp_path / "m"
    with started([*training(store, out, 400), "--workers", "1"]) as process:
        wait_for_a_checkpoint(process, out)
        os.kill(process.pid, signal.SIGTERM)
        os.kill(process.pid, signal.SIGTERM)  # a second signal changes nothing
        printed, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert printed == ""
    assert "Traceback" not in err
    assert "semaphore" not in err
    assert "the same command goes on where this one stops\nnowcast: terminated\n" in err


@pytest.mark.long
@pytest.mark.kills
def test_ctrl_c_ends_training_with_130_and_the_same_command_goes_on(tmp_path):
    """As from a terminal, the signal reaches the driver and every worker at once."""
    store = write_store(tmp_path / "rain.zarr", translation(40, 0, 3, 48))

    def command(out):
        return training(store, out, 4)

    def start(out):
        return started([*command(out), "--workers", "2"])

    out = tmp_path / "m"
    with start(out) as process:
        wait_for_a_checkpoint(process, out)
        os.killpg(process.pid, signal.SIGINT)
        printed, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert printed == ""
    assert "Traceback" not in err
    assert "the same command goes on where this one stops\nnowcast: interrupted\n" in err
    assert not (out / "model.safetensors").exists()
    with start(out) as process:
        _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    # The resumed model has the bits of an undisturbed run, here without workers.
    assert run(app, command(tmp_path / "whole")) == 0
    resumed, whole = load_model(out), load_model(tmp_path / "whole")
    assert (resumed.network.flat == whole.network.flat).all()
