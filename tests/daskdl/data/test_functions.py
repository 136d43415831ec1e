"""Functions: which of them draw random numbers, and how errors call them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl.data import Ragged
from daskdl.data.arrays import Arrays
from daskdl.data.functions import Plain, checked, name_of, plainly, take, wants_rng
from daskdl.errors import DataError


def add(batch, rng):
    return {"x": batch["x"] + rng.integers(100)}


def test_a_function_of_two_arguments_wants_numbers():
    assert wants_rng(add)
    assert not wants_rng(Plain(add))
    assert not wants_rng(lambda batch: batch)
    assert not wants_rng(partial(add, rng=None))
    assert (name_of(add), name_of(Plain(add)), name_of(partial(add))) == ("add", "add", "partial")


def test_functions_are_called_in_turn():
    held = Arrays({"x": np.arange(3)})
    draws = [take(held, np.array([2, 0]), [add, add], (seed, "a"))["x"] for seed in (1, 1, 2)]
    assert draws[0].tolist() == draws[1].tolist() != draws[2].tolist()
    twice = [lambda batch: {"x": batch["x"] * 2}] * 2
    assert plainly(twice, held, np.array([1]))["x"].tolist() == [4]


def test_a_result_has_as_many_samples():
    words = {"x": np.zeros(2), "w": Ragged.of([[1], []])}
    assert checked(add, words, 2) is words
    with pytest.raises(
        DataError, match=r"expected add .* 3 samples, found {'x': \(2,\), 'w': \(2,"
    ):
        checked(add, words, 3)
