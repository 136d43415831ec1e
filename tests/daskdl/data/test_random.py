"""Random numbers of a run: the same on every machine, others for every purpose and number."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from daskdl.data.random import generator
from daskdl.errors import SettingsError

DRAW = "from daskdl.data.random import generator; print(generator(3, 'order', 1, 2).random())"


@pytest.mark.slow
def test_another_process_draws_the_same():
    # The hash of a string differs between processes; a seed made with it would, too.
    run = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True, check=True)
    assert float(run.stdout) == generator(3, "order", 1, 2).random()


def test_draws_differ_by_seed_purpose_and_numbers():
    numbers = [(), (0,), (0, 0), (1,), (1, 0), (0, 1), (-1,), (2**32,), (2**63,)]
    draws = {
        generator(seed, purpose, *more).integers(2**63)
        for seed, purpose, more in itertools.product((0, 1), ("order", "map"), numbers)
    }
    assert len(draws) == 4 * len(numbers)


def test_a_negative_seed_is_refused():
    with pytest.raises(SettingsError, match="seed: expected at least 0, found -1"):
        generator(-1, "order")
