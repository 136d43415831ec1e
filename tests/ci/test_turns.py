"""Two checkouts in turn: one that is both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ci.bench import turns

ROOT = str(Path(__file__).resolve().parents[2])


@pytest.mark.long
def test_a_checkout_beside_itself(capsys: pytest.CaptureFixture[str]) -> None:
    turns.main([ROOT, ROOT, "--only", "LeNet", "--seconds", "0.1"])
    _, row, mean = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"LeNet-5 b64 28x28 +\d+\.\d{3} +\d+\.\d{3} +6", row)
    assert mean.split()[-1] == row.split()[3]


def test_one_is_not_enough(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        turns.main([ROOT])
    assert "expected two checkouts, found 1" in capsys.readouterr().err
