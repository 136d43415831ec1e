from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.optim import SGD, Adagrad, Adam
from daskdl.train.member import Gang, by_element

METHODS = [
    SGD(0.1),
    SGD(0.1, 0.9, weight_decay=0.01),
    SGD(0.1, 0.9, True),
    Adagrad(0.1),
    Adam(0.1, weight_decay=0.01),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@settings(max_examples=20)
@given(size=st.integers(2, 300_000), cut=st.integers(0, 300_000))
def test_a_step_of_parts_has_the_bits_of_the_whole_step(method: Any, size: int, cut: int) -> None:
    assert by_element(method)
    rng = np.random.default_rng(size)
    cut = cut % size // 16 * 16
    weights, gradient = rng.normal(size=(2, size)).astype(np.float32)
    slots = {name: rng.random(size, np.float32) for name in method.init(size)}
    whole, state = method.update(weights, gradient, slots, 3)
    for part in (slice(0, cut), slice(cut, size)):
        here = {name: slot[part] for name, slot in slots.items()}
        found, own = method.update(weights[part], gradient[part], here, 3)
        np.testing.assert_array_equal(found, whole[part])
        for name, slot in own.items():
            np.testing.assert_array_equal(slot, state[name][part])


def test_who_looks_at_the_whole_gradient_steps_the_whole_vector() -> None:
    @dataclass
    class Own:
        by_element: bool

    assert not by_element(Adam(0.1, clip_norm=1.0))
    assert not by_element(object())
    assert by_element(Own(True))
    assert not by_element(Own(False))


def test_members_share_the_vector_out() -> None:
    gang = Gang("g", ("tcp://a:1", "tcp://b:1", "tcp://c:1"), (0, 0, 1, 2, 1), 1.0)
    covered = [i for own in gang.slices(1000) for s in own for i in range(s.start, s.stop)]
    assert sorted(covered) == list(range(1000))
    assert [gang.shards(rank) for rank in range(3)] == [[0, 1], [2, 4], [3]]
    assert math.prod(gang.plan(rank).root[0] for rank in range(3)) == 27


def test_a_member_has_a_name_for_errors() -> None:
    gang = Gang("g", ("tcp://a:1", "tcp://b:1"), (0, *[1] * 20), 1.0)
    assert gang.name(0) == "worker tcp://a:1 (shard 0)"
    assert gang.name(1) == "worker tcp://b:1 (shards 1, 2, 3, 4, 5, 6, 7, 8, ...)"
