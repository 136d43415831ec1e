"""Identity: a checkpoint is of one run, and what differs from another is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from daskdl.errors import CheckpointError
from daskdl.train.fit.checkpoint import check_identity

IDENTITY = {"model": [["0.weight", [5, 8]], ["2.weight", [8, 2]]], "batch_size": 8}


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
