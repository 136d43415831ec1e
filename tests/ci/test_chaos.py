"""The chaos program: one trial of a seed, whose weights are those of an undisturbed run."""

from __future__ import annotations

import pytest

from ci import chaos


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.kills
def test_a_trial_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert chaos.main(["--trials", "1", "--seed", "2"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    name, faults, same, *others = last.split()
    assert name == "all"
    assert int(faults) > 0
    assert [same, *others] == ["1", "0", "0", "0"]
