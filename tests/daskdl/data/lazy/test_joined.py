"""Partitions: cut, joined and cut again they hold the same samples in the same order."""

from __future__ import annotations

import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.compat.dask import Task
from daskdl.data.lazy.derived import Derived, Loaded, part_of, select_from
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.lazy.joined import cut, even_bounds, join
from daskdl.data.lazy.transformations import MapBatches, Range
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Arrays

RAGGED = Ragged.of([[3, 4], []])
LENGTHS = st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any)


def recipes_of(lengths):
    """Return recipes of samples that are numbered from 0 through all of them."""
    bounds = np.cumsum([0, *lengths])
    return [
        Arrays({"x": np.arange(a, b), "y": np.arange(a, b, dtype=np.float32)[:, None] / 2})
        for a, b in pairwise(bounds)
    ]


@given(LENGTHS, st.data())
def test_a_cut_has_the_samples_of_its_stretch(lengths, data):
    n = sum(lengths)
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    recipe = join(cut(recipes_of(lengths), start, stop))
    assert len(recipe) == len(recipe.load()) == stop - start
    assert recipe.nbytes == recipe.load().nbytes == 12 * (stop - start)
    a = data.draw(st.integers(0, len(recipe) - 1))
    b = data.draw(st.integers(a + 1, len(recipe)))
    part = recipe.part(a, b).load()
    assert part.take(np.arange(b - a))["x"].tolist() == list(range(start + a, start + b))


@given(LENGTHS, st.data())
def test_samples_come_in_the_order_asked_for(lengths, data):
    indices = np.array(data.draw(st.lists(st.integers(0, sum(lengths) - 1), max_size=20)), np.int64)
    batch = join(recipes_of(lengths)).load().take(indices)
    np.testing.assert_array_equal(batch["x"], indices)
    np.testing.assert_array_equal(batch["y"], indices[:, None] / np.float32(2))
    assert {name: a.dtype for name, a in batch.items()} == {"x": np.int64, "y": np.float32}


@given(st.integers(0, 50), st.integers(1, 12))
def test_even_bounds(n, parts):
    bounds = even_bounds(n, parts)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, n, parts + 1)
    assert set(np.diff(bounds)) <= {n // parts, -(-n // parts)}


def test_whole_recipes_are_not_cut():
    recipes = recipes_of([2, 0, 3, 2])
    assert [recipe is recipes[2] for recipe in cut(recipes, 1, 6)] == [False, True, False]


def test_a_batch_does_not_share_memory_with_the_samples():
    (recipe,) = recipes_of([3])
    recipe.take(np.array([0, 1, 2]))["x"][:] = 9
    assert recipe.arrays["x"].tolist() == [0, 1, 2]


def test_a_part_pickles_without_the_rest():
    part = Arrays({"x": np.zeros((1000, 100))}).part(10, 12)
    assert len(pickle.dumps(part)) < 3000


@pytest.mark.parametrize("lengths", [[4], [2, 2]])
def test_dask_learns_the_size_of_a_partition(lengths):
    """Workers call ``sys.getsizeof`` when they decide which data to spill."""
    assert 48 <= sys.getsizeof(join(recipes_of(lengths)).load()) < 48 + 50


def test_parts_of_different_types_get_a_common_type():
    parts = [
        Arrays({}),
        Arrays({"n": np.array([1, 2]), "s": np.array(["a", "b"]), "r": np.array([[1], [2]])}),
        Arrays({"n": np.array([0.5, np.nan]), "s": np.array(["long", "c"]), "r": RAGGED}),
    ]
    batch = join(parts).load().take(np.array([2, 0, 3, 1]))
    np.testing.assert_array_equal(batch["n"], [0.5, 1, np.nan, 2])
    assert batch["s"].tolist() == ["long", "a", "c", "b"]
    assert [row.tolist() for row in batch["r"]] == [[3, 4], [1], [], [2]]
    alone = join(parts).load().take(np.array([1, 0]))
    assert (alone["n"].dtype, [r.tolist() for r in alone["r"]]) == (np.float64, [[2], [1]])
    assert isinstance(join(parts).load().take(np.arange(0))["r"], Ragged)


def test_sequences_that_have_one_length_in_each_part():
    parts = [Arrays({"r": np.array([[1, 2]])}), Arrays({"r": np.array([[3], [4]])})]
    batch = join(parts).load().take(np.array([2, 0]))
    assert [row.tolist() for row in batch["r"]] == [[4], [1, 2]]


def test_bytes_of_objects_are_counted():
    records = np.array([bytes(1000)] * 300, object)
    images = np.empty(3, object)
    images[:] = [np.zeros((n, 100), np.uint8) for n in (10, 20, 30)]
    assert 300 * 1000 < Arrays({"x": records}).nbytes < 300 * 1100
    assert Arrays({"x": images, "y": np.zeros(3)}).nbytes == 6000 + 2 * 3 * 8
    assert Arrays({"x": records[:0]}).nbytes == 0


def doubled(batch):
    return {"x": 2 * batch["x"]}


def test_a_part_of_mapped_samples_maps_only_that_part():
    seen = []

    def doubled(batch):
        seen.append(len(batch["x"]))
        return {"x": 2 * batch["x"]}

    whole = Derived((Arrays({"x": np.arange(10)}),), MapBatches(doubled, 4), 10, 80)
    part = whole.part(2, 5).part(1, 3)
    assert (len(part), part.in_memory, part.nbytes) == (2, True, 16)
    assert part.load().take(np.arange(2))["x"].tolist() == [6, 8]
    assert seen == [2]


def test_a_part_of_a_selection_selects_from_the_whole():
    whole = select_from(Arrays({"x": np.arange(10)}), lambda n: np.arange(0, n, 2), 5)
    part = whole.part(1, 4).part(1, 3)
    assert (len(part), part.in_memory, part.nbytes) == (2, True, 16)
    assert part.load().take(np.arange(2))["x"].tolist() == [4, 6]


def test_samples_not_selected_are_not_sent():
    recipe = Arrays({"x": np.arange(100_000)})
    some = select_from(recipe, Range(5, 8), 3)
    made = Derived((some,), MapBatches(doubled, 4), 3, 24)
    assert len(pickle.dumps(made)) > recipe.nbytes
    sent = made.for_sending()
    assert len(pickle.dumps(sent)) < 2000
    assert sent.load().arrays["x"].tolist() == [10, 12, 14]
    assert recipe.for_sending() is recipe


def test_tasks_are_computed_where_the_recipe_is_loaded():
    tasks = {"a": Task("a", np.arange, 4)}
    recipe = FromTasks(tasks, ("a",), lambda x: Arrays({"x": x}), 4, 32)
    assert (len(recipe), recipe.futures, recipe.in_memory) == (4, (), False)
    assert part_of(recipe, 1, 3).load().arrays["x"].tolist() == [1, 2]


def test_a_partition_in_memory_is_its_own_recipe():
    recipe = Loaded(Arrays({"x": np.arange(4)}))
    assert (len(recipe), recipe.nbytes, recipe.in_memory) == (4, 32, True)
    assert part_of(recipe, 1, 3).load().arrays["x"].tolist() == [1, 2]
