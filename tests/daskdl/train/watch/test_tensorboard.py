"""Event files, read back as TensorBoard reads them."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX.crc32c import crc32c
from tensorboardX.proto.event_pb2 import Event

from daskdl.errors import MissingExtraError
from daskdl.train import TensorBoard
from daskdl.train.engines.step import PHASES
from tests.daskdl.train.interrupted import Interrupt
from tests.daskdl.train.runs import fit, problem

Points = dict[str, dict[int, float]]


def masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(path: Path) -> Iterator[Any]:
    """Yield the events of a file: records of a length, its checksum, the data and theirs."""
    content, at = path.read_bytes(), 0
    while at < len(content):
        head = content[at : at + 8]
        (length,) = struct.unpack("<Q", head)
        data = content[at + 12 : at + 12 + length]
        checks = content[at + 8 : at + 12] + content[at + 12 + length : at + 16 + length]
        assert struct.unpack("<II", checks) == (masked(head), masked(data))
        yield Event.FromString(data)
        at += 16 + length


def points(folder: Path) -> Points:
    """Return what TensorBoard shows: after a session's start, steps from its own on are gone."""
    shown: Points = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in events(path):
            if event.HasField("session_log"):
                for values in shown.values():
                    for step in [step for step in values if step >= event.step]:
                        del values[step]
            for value in event.summary.value:
                shown.setdefault(value.tag, {})[event.step] = value.simple_value
    return shown


def test_a_fit_is_in_the_file(tmp_path: Path) -> None:
    trainer = fit(problem(), epochs=2, validation=problem(2), callbacks=[TensorBoard(tmp_path)])
    found, history = points(tmp_path), trainer.history
    steps = list(range(1, 15))
    per_iteration = {f"seconds/{phase}" for phase in PHASES}
    per_iteration |= {"iteration/loss", "iteration/samples_per_second"}
    assert per_iteration <= set(found)
    assert all(list(found[tag]) == steps for tag in per_iteration)
    np.testing.assert_allclose([*found["iteration/loss"].values()], history["loss"], rtol=1e-6)
    np.testing.assert_allclose([*found["seconds/wait"].values()], history["wait"], rtol=1e-6)
    rates = history.to_frame()["samples_per_second"]
    np.testing.assert_allclose([*found["iteration/samples_per_second"].values()], rates, rtol=1e-6)
    for name in ("loss", "val_loss", "samples_per_second", "validation"):
        expected = {row["iteration"]: pytest.approx(row[name]) for row in history.epochs}
        assert found[f"epoch/{name}"] == expected


def test_times_are_those_of_the_iterations(tmp_path: Path) -> None:
    trainer = fit(problem(), epochs=1, callbacks=[TensorBoard(tmp_path)])
    (path,) = tmp_path.iterdir()
    times = [
        event.wall_time
        for event in events(path)
        if [v.tag for v in event.summary.value] == ["iteration/loss"]
    ]
    assert len(times) == 7
    # Within a group by the seconds of each; groups end at 1, 5 and 7.
    np.testing.assert_allclose(np.diff(times)[1:4], trainer.history["seconds"][2:5], atol=1e-5)


@pytest.mark.usefixtures("short_groups")
def test_a_resumed_run_goes_on_in_the_same_folder(tmp_path: Path) -> None:
    logs, checkpoint = tmp_path / "logs", tmp_path / "c"
    options = {"epochs": 2, "checkpoint": checkpoint, "checkpoint_every": 4}
    with pytest.raises(RuntimeError):
        fit(problem(), callbacks=[TensorBoard(logs), Interrupt(6, error=RuntimeError)], **options)
    before = points(logs)
    assert list(before["iteration/loss"]) == [1, 2, 3, 4, 5, 6]  # though nobody ended the file
    options |= {"epochs": None, "iterations": 5}
    trainer = fit(problem(), callbacks=[TensorBoard(logs)], **options)
    after = points(logs)["iteration/loss"]
    assert list(after) == [1, 2, 3, 4, 5]  # what lay beyond the checkpoint is gone
    np.testing.assert_allclose([*after.values()], trainer.history["loss"], rtol=1e-6)


def test_without_tensorboardx_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtraError, match=r"pip install daskdl\[tensorboard\]"):
        TensorBoard("logs")
