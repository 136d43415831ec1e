from __future__ import annotations

import hashlib
import json
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from daskdl.errors import CheckpointError
from daskdl.train.fit import checkpoint
from daskdl.train.fit.checkpoint import CheckpointFolder, Saved

IDENTITY = {"model": [["0.weight", [5, 8]], ["2.weight", [8, 2]]], "batch_size": 8}


def saved(iteration: int = 12, **arrays: object) -> Saved:
    arrays = arrays or {"weights": np.full(3, iteration, np.float32)}
    return Saved(iteration, IDENTITY, arrays, {"epochs": [{"loss": 0.1}], "threads": 1})


def filled(path: Path, *iterations: int) -> CheckpointFolder:
    folder = CheckpointFolder(path)
    for iteration in iterations:
        folder.write(saved(iteration))
    return folder


def names(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


def test_the_same_bits_come_back(tmp_path):
    rng = np.random.default_rng(0)
    odd = np.array([np.nan, -0.0, np.inf, 1e-45], np.float32)
    odd.view(np.uint32)[0] = 0x7FC0BEEF  # a NaN with a payload
    arrays = {
        "odd": odd,
        "scalar": np.array(3.5),  # if it became (1,), a run with BestModel would not go on
        "number": np.array(-7),
        "flag": np.array(True),
        "empty": np.zeros((0, 3), np.float32),
        "columns": np.asfortranarray(rng.normal(size=(4, 5))),
        "strided": rng.normal(size=(6, 4)).astype(np.float32)[::-2, 1:],
    }
    folder = CheckpointFolder(tmp_path / "new" / "folder")
    folder.write(saved(12, **arrays))
    back = folder.read()
    assert (back.iteration, back.identity) == (12, IDENTITY)
    assert back.more == {"epochs": [{"loss": 0.1}], "threads": 1}
    assert set(back.arrays) == set(arrays)
    for name, array in arrays.items():
        restored = back.arrays[name]
        assert (restored.dtype, restored.shape) == (array.dtype, array.shape), name
        assert restored.tobytes() == array.tobytes(), name


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    assert CheckpointFolder(tmp_path).read() is None


def test_the_last_two_are_kept_and_nothing_else_is_touched(tmp_path):
    others = ["step-size", "step-1", "notes.txt"]
    for name in others:
        (tmp_path / name).mkdir()
    folder = filled(tmp_path, 8, 9, 10, 100)
    assert names(tmp_path) == sorted([*others, "step-0000000010", "step-0000000100"])
    back = folder.read()
    assert back.iteration == 100
    folder.clear()
    assert names(tmp_path) == sorted(others)


def test_the_same_iteration_is_written_again(tmp_path):
    folder = filled(tmp_path, 5)
    folder.write(saved(5, weights=np.zeros(2)))
    back = folder.read()
    assert back.arrays["weights"].shape == (2,)
    assert names(tmp_path) == ["step-0000000005"]


@pytest.mark.parametrize("iteration", [4, 5])
@pytest.mark.parametrize("name", ["write_synced", "sync"])
def test_a_kill_while_writing_leaves_the_checkpoint_before(tmp_path, monkeypatch, name, iteration):
    folder = filled(tmp_path, 4)
    calls = iter(range(9))
    do = getattr(checkpoint, name)

    def killed(path, *content):
        if next(calls) == (1 if name == "write_synced" else 0):
            raise SystemExit  # not an OSError: nothing is cleaned up
        do(path, *(part[: len(part) // 2] for part in content))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, name, killed)
        with pytest.raises(SystemExit):
            folder.write(saved(iteration, weights=np.zeros(2)))
    assert len(names(tmp_path)) == 2
    back = CheckpointFolder(tmp_path).read()
    assert back.iteration == 4
    np.testing.assert_array_equal(back.arrays["weights"], np.float32([4, 4, 4]))
    folder.write(saved(6))
    assert names(tmp_path) == ["step-0000000004", "step-0000000006"]  # without the rest of the kill


@pytest.mark.parametrize("broken", ["write", "rename"])
@pytest.mark.parametrize("iteration", [4, 5])
def test_a_full_disk_is_named_and_leaves_the_one_before(tmp_path, monkeypatch, broken, iteration):
    folder = filled(tmp_path, 4)
    rename = Path.rename

    def full(path, other):
        if broken == "write" or path.name.endswith(f"{iteration:010d}.{os.getpid()}"):
            raise OSError(28, "No space left on device")
        return rename(path, str(other))

    with monkeypatch.context() as patched:
        patched.setattr(
            *((checkpoint, "write_synced") if broken == "write" else (Path, "rename")), full
        )
        with pytest.raises(CheckpointError) as raised:
            folder.write(saved(iteration, weights=np.zeros(2)))
    sentence = str(raised.value)
    assert sentence.startswith(f"{tmp_path / f'step-{iteration:010d}'}: the checkpoint cannot be")
    assert "No space left on device" in sentence
    assert names(tmp_path) == ["step-0000000004"]
    back = folder.read()
    assert back.arrays["weights"].shape == (3,)


@pytest.mark.parametrize("value", [np.array("text"), np.array([{}], object), 1j])
def test_arrays_that_no_checkpoint_can_hold_are_refused(tmp_path, value):
    folder = filled(tmp_path, 4)
    with pytest.raises(CheckpointError, match=r"step-0000000005: expected arrays .*state\(\)"):
        folder.write(saved(5, weights=np.zeros(2), mine=value))
    assert names(tmp_path) == ["step-0000000004"]


# --- damaged checkpoints


STATE, MANIFEST, SUMS = "state.safetensors", "manifest.json", "SHA256SUMS"
Damage = Callable[[Path], None]


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


def lost(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


truncate, garble = rewritten(STATE, lambda data: data[:-3]), rewritten(MANIFEST, lambda _: b"\xff{")


def sum_up(folder: Path) -> None:
    """Write the checksums of the files."""
    files = ("state.safetensors", "manifest.json")
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def another_kind(folder: Path) -> None:
    (folder / "manifest.json").write_text('["another program"]')
    sum_up(folder)


def change(key: str, value: object) -> Damage:
    def changed(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest[key] = value
        if value is None:
            del manifest[key]
        (folder / "manifest.json").write_text(json.dumps(manifest))
        sum_up(folder)

    return changed


DAMAGE = [
    (truncate, "state.safetensors: expected the sha256"),
    (rewritten(STATE, lambda data: data[:-1] + b"\xff"), "state.safetensors: expected the sha256"),
    (lost(STATE), "No such file"),
    (garble, "manifest.json: expected the sha256"),
    (
        rewritten(MANIFEST, lambda data: data.replace(b'"iteration": ', b'"iteration": 1')),
        "manifest.json: expected the sha256",
    ),
    (lost(SUMS), "SHA256SUMS: expected the sha256 of the other files, found no such"),
    (another_kind, "expected format 'daskdl-checkpoint-2', found None"),
    (change("format", "daskdl-checkpoint-9"), "found 'daskdl-checkpoint-9'"),
    (change("identity", None), r"manifest.json: expected 'identity' as dict, found None"),
    (change("iteration", "8"), r"manifest.json: expected 'iteration' as int, found '8'"),
    (change("iteration", 7), r"manifest.json: expected the iteration of its folder, found 7"),
    (change("more", None), "expected 'more' as dict, found None"),
]


def test_no_bit_of_a_checkpoint_can_change_unnoticed(tmp_path):
    folder = filled(tmp_path, 4)
    for file in sorted((tmp_path / "step-0000000004").iterdir()):
        whole = file.read_bytes()
        for place in range(len(whole)):
            changed = bytearray(whole)
            changed[place] ^= 1 << place % 8
            file.write_bytes(changed)
            with pytest.raises(CheckpointError, match="expected a whole checkpoint"):
                folder.read()
        file.write_bytes(whole)
    assert folder.read() is not None


def test_sha256sum_checks_a_checkpoint(tmp_path):
    filled(tmp_path, 4)
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(command, cwd=tmp_path / "step-0000000004", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "manifest.json: OK\nstate.safetensors: OK\n")


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "message"), DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(tmp_path, caplog, damage, message):
    folder = filled(tmp_path, 4, 5)
    damage(tmp_path / "step-0000000005")
    with caplog.at_level(logging.WARNING, checkpoint.__name__):
        back = folder.read()
    assert back.iteration == 4
    # Clusters of other tests may still log warnings.
    (warning,) = [r.getMessage() for r in caplog.records if r.name == checkpoint.__name__]
    assert warning.startswith(f"{tmp_path}: step-0000000005 (")
    assert warning.endswith(" is not whole; going on from step-0000000004")

    damage(tmp_path / "step-0000000004")
    with pytest.raises(CheckpointError, match=message) as raised:
        folder.read()
    sentence = str(raised.value)
    assert sentence.startswith(f"{tmp_path}: expected a whole checkpoint, found step-0000000005 (")
    assert "step-0000000004 (" in sentence
    assert "resume=False" in sentence
    assert "\n" not in sentence


# --- two fits, and killed ones


def test_a_second_fit_is_refused_the_folder(tmp_path):
    with (
        CheckpointFolder(tmp_path).exclusive(),
        pytest.raises(CheckpointError, match=rf"found another fit .* \(process {os.getpid()} on "),
        CheckpointFolder(tmp_path).exclusive(),
    ):
        pass
    with CheckpointFolder(tmp_path).exclusive():
        pass
    assert names(tmp_path) == []


def _write_again_and_die(path: Path) -> None:
    """Be killed between the rename of the old checkpoint and that of the new one."""
    rename = Path.rename

    def killed(it: Path, other: Path) -> Path:
        if other.name == "step-0000000004":
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(it, other)

    Path.rename = killed  # type: ignore[assignment,method-assign]
    folder = CheckpointFolder(path)
    with folder.exclusive():
        folder.write(saved(4, weights=np.zeros(2)))


@pytest.mark.kills
@pytest.mark.parametrize("then", ["read", "write"])
def test_a_checkpoint_that_was_aside_at_a_kill_is_put_back(tmp_path, then):
    folder = filled(tmp_path, 4)
    process = multiprocessing.get_context("spawn").Process(
        target=_write_again_and_die, args=(tmp_path,)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert "step-0000000004" not in names(tmp_path)
    if then == "write":
        folder.write(saved(5))
        assert names(tmp_path) == [".lock", "step-0000000004", "step-0000000005"]
        shutil.rmtree(tmp_path / "step-0000000005")
    with folder.exclusive():
        back = folder.read()
    np.testing.assert_array_equal(back.arrays["weights"], np.float32([4, 4, 4]))
    assert names(tmp_path) == ["step-0000000004"]


# --- folders


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="file: expected a folder to write checkpoints to"):
        CheckpointFolder(tmp_path / "file")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that root cannot write")
def test_a_folder_that_cannot_be_written_is_refused_at_once():
    with pytest.raises(CheckpointError, match=r"/proc/self: .* cannot be written"):
        CheckpointFolder("/proc/self")


def test_checkpoints_that_cannot_be_removed_are_named(tmp_path, monkeypatch):
    folder = filled(tmp_path, 4)

    def refuse(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint.shutil, "rmtree", refuse)
    with pytest.raises(CheckpointError, match=r"cannot be removed .*Permission denied"):
        folder.clear()
