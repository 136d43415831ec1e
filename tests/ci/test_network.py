"""The model of a network: what was written down of it."""

from __future__ import annotations

import pytest

from ci.bench.network import MESSAGE, moved, predicted


def test_the_model_is_the_one_that_was_written_down():
    # 28 MB over 10 Gbit/s: 3.2 % of 1.5 s at 32 hosts, and 3.4 % at 256.
    assert predicted(32, 28, 10_000) / 1500 == pytest.approx(0.032, abs=0.0005)
    assert predicted(256, 28, 10_000) / 1500 == pytest.approx(0.034, abs=0.0005)


def test_a_small_vector_takes_its_messages():
    assert predicted(8, 0, 1000) == pytest.approx(6 * MESSAGE)
    assert moved(2, 28) == 28
