from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from daskdl.errors import CheckpointError
from daskdl.train import checkpoint
from daskdl.train.checkpoint import CheckpointFolder, Saved, check_identity

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


def test_the_same_bits_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    odd = np.array([np.nan, -0.0, np.inf, 1e-45], np.float32)
    odd.view(np.uint32)[0] = 0x7FC0BEEF  # a NaN that carries something
    arrays = {
        "odd": odd,
        "scalar": np.array(3.5),  # was (1,) once, and a run with BestModel did not go on
        "number": np.array(-7),
        "flag": np.array(True),
        "empty": np.zeros((0, 3), np.float32),
        "columns": np.asfortranarray(rng.normal(size=(4, 5))),
        "strided": rng.normal(size=(6, 4)).astype(np.float32)[::-2, 1:],
    }
    folder = CheckpointFolder(tmp_path / "new" / "folder")
    folder.write(saved(12, **arrays))
    back = folder.read()
    assert back is not None
    assert (back.iteration, back.identity) == (12, IDENTITY)
    assert back.more == {"epochs": [{"loss": 0.1}], "threads": 1}
    assert set(back.arrays) == set(arrays)
    for name, array in arrays.items():
        found = back.arrays[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape), name
        assert found.tobytes() == array.tobytes(), name


def test_an_empty_folder_has_nothing_to_go_on_from(tmp_path: Path) -> None:
    assert CheckpointFolder(tmp_path).read() is None


def test_the_last_two_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    others = ["step-size", "step-1", "notes.txt"]
    for name in others:
        (tmp_path / name).mkdir()
    folder = filled(tmp_path, 8, 9, 10, 100)
    assert names(tmp_path) == sorted([*others, "step-0000000010", "step-0000000100"])
    found = folder.read()
    assert found is not None
    assert found.iteration == 100
    folder.clear()
    assert names(tmp_path) == sorted(others)


def test_the_same_iteration_is_written_again(tmp_path: Path) -> None:
    folder = filled(tmp_path, 5)
    folder.write(saved(5, weights=np.zeros(2)))
    found = folder.read()
    assert found is not None
    assert found.arrays["weights"].shape == (2,)
    assert names(tmp_path) == ["step-0000000005"]


@pytest.mark.parametrize("iteration", [4, 5])
@pytest.mark.parametrize("name", ["_write", "_sync"])
def test_a_kill_while_writing_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, iteration: int
) -> None:
    folder = filled(tmp_path, 4)
    calls = iter(range(9))
    do = getattr(checkpoint, name)

    def killed(path: Path, *content: bytes) -> None:
        if next(calls) == (1 if name == "_write" else 0):
            raise SystemExit  # not an OSError: nothing tidies up
        do(path, *(part[: len(part) // 2] for part in content))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, name, killed)
        with pytest.raises(SystemExit):
            folder.write(saved(iteration, weights=np.zeros(2)))
    assert len(names(tmp_path)) == 2
    found = CheckpointFolder(tmp_path).read()
    assert found is not None
    assert found.iteration == 4
    np.testing.assert_array_equal(found.arrays["weights"], np.float32([4, 4, 4]))
    folder.write(saved(6))
    assert names(tmp_path) == ["step-0000000004", "step-0000000006"]  # and what was left is gone


@pytest.mark.parametrize("broken", ["write", "rename"])
@pytest.mark.parametrize("iteration", [4, 5])
def test_a_full_disk_is_told_and_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, iteration: int
) -> None:
    folder = filled(tmp_path, 4)
    rename = Path.rename

    def full(path: Path, other: object) -> Path:
        if broken == "write" or path.name.endswith(f"{iteration:010d}.{os.getpid()}"):
            raise OSError(28, "No space left on device")
        return rename(path, str(other))

    with monkeypatch.context() as patched:
        patched.setattr(*((checkpoint, "_write") if broken == "write" else (Path, "rename")), full)
        with pytest.raises(CheckpointError) as raised:
            folder.write(saved(iteration, weights=np.zeros(2)))
    sentence = str(raised.value)
    assert sentence.startswith(f"{tmp_path / f'step-{iteration:010d}'}: the checkpoint cannot be")
    assert "No space left on device" in sentence
    assert names(tmp_path) == ["step-0000000004"]
    found = folder.read()
    assert found is not None
    assert found.arrays["weights"].shape == (3,)


@pytest.mark.parametrize("value", [np.array("text"), np.array([{}], object), 1j])
def test_what_no_checkpoint_can_hold_is_refused(tmp_path: Path, value: object) -> None:
    folder = filled(tmp_path, 4)
    with pytest.raises(CheckpointError, match=r"step-0000000005: expected arrays .*state\(\)"):
        folder.write(saved(5, weights=np.zeros(2), mine=value))
    assert names(tmp_path) == ["step-0000000004"]


# --- what is damaged


def truncate(folder: Path) -> None:
    state = folder / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-3])


def flip(folder: Path) -> None:
    state = folder / "state.safetensors"
    state.write_bytes(state.read_bytes()[:-1] + b"\xff")


def lose(folder: Path) -> None:
    (folder / "state.safetensors").unlink()


def garble(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"\xff\x00{")


def change(key: str, value: object) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest[key] = value
        if value is None:
            del manifest[key]
        (folder / "manifest.json").write_text(json.dumps(manifest))

    return changed


def another_kind(folder: Path) -> None:
    (folder / "manifest.json").write_text('["another program"]')


DAMAGE = [
    (truncate, "state.safetensors: expected the sha256"),
    (flip, "state.safetensors: expected the sha256"),
    (lose, "No such file"),
    (garble, "can't decode"),
    (another_kind, "expected format 'daskdl-checkpoint-1', found None"),
    (change("format", "daskdl-checkpoint-9"), "found 'daskdl-checkpoint-9'"),
    (change("identity", None), r"manifest.json: expected \['identity'\], found \["),
    (change("sha256", {}), "state.safetensors: expected the sha256"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE)
def test_the_one_before_is_used_where_the_last_is_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None], said: str
) -> None:
    folder = filled(tmp_path, 4, 5)
    damage(tmp_path / "step-0000000005")
    with caplog.at_level(logging.WARNING, checkpoint.__name__):
        found = folder.read()
    assert found is not None
    assert found.iteration == 4
    (warning,) = caplog.messages
    assert warning.startswith(f"{tmp_path}: step-0000000005 (")
    assert warning.endswith(" is not whole; going on from step-0000000004")

    damage(tmp_path / "step-0000000004")
    with pytest.raises(CheckpointError, match=said) as raised:
        folder.read()
    sentence = str(raised.value)
    assert sentence.startswith(f"{tmp_path}: expected a whole checkpoint, found step-0000000005 (")
    assert "step-0000000004 (" in sentence
    assert "resume=False" in sentence
    assert "\n" not in sentence


# --- another run's


@pytest.mark.parametrize(
    ("name", "wanted", "said"),
    [
        ("batch_size", 16, "expected batch_size 16, found 8; give another folder"),
        (
            "model",
            [["0.weight", [5, 8]], ["2.weight", [8, 3]]],
            'expected model[1] ["2.weight", [8, 3]], found ["2.weight", [8, 2]];',
        ),
        ("model", [["0.weight", [5, 8]]], "expected model of 1 entries, found 2;"),
        ("seed", 1, "expected seed 1, found null;"),
    ],
)
def test_what_differs_is_named(name: str, wanted: object, said: str) -> None:
    with pytest.raises(CheckpointError) as raised:
        check_identity(Path("runs"), IDENTITY, {**IDENTITY, name: wanted})
    sentence = str(raised.value)
    assert sentence.startswith("runs: holds the checkpoint of another run: ")
    assert said in sentence


def test_a_run_goes_on_from_its_own() -> None:
    check_identity(Path("runs"), json.loads(json.dumps(IDENTITY)), IDENTITY)


# --- where nothing can be written


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match="file: expected a folder to write checkpoints to"):
        CheckpointFolder(tmp_path / "file")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that root cannot write")
def test_a_folder_that_cannot_be_written_is_known_at_once() -> None:
    with pytest.raises(CheckpointError, match=r"/proc/self: .* cannot be written"):
        CheckpointFolder("/proc/self")


def test_checkpoints_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path, 4)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint.shutil, "rmtree", refuse)
    with pytest.raises(CheckpointError, match=r"cannot be removed .*Permission denied"):
        folder.clear()
