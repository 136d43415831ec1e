"""The example runs as a user would run it, and what it trains is right."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_network.py"


@pytest.mark.slow
def test_it_learns_what_it_says():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=200, check=True
    )
    match = re.search(r"accuracy on new samples: (\d\.\d+)", done.stdout)
    assert match, done.stdout
    assert float(match[1]) > 0.93
