"""Derived recipes: parts of them, what is sent of them, and what computes them."""

from __future__ import annotations

import pickle

import numpy as np

from daskdl.compat.dask_graph import Task
from daskdl.data.arrays import Arrays
from daskdl.data.lazy.derived import Derived, Loaded, part_of, select_from
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.lazy.transformations import MapBatches, Range


def doubled(batch):
    return {"x": 2 * batch["x"]}


def test_a_part_of_what_a_function_makes_is_made_of_a_part():
    seen = []

    def doubled(batch):
        seen.append(len(batch["x"]))
        return {"x": 2 * batch["x"]}

    whole = Derived((Arrays({"x": np.arange(10)}),), MapBatches(doubled, 4), 10, 80)
    part = whole.part(2, 5).part(1, 3)
    assert (len(part), part.in_memory, part.nbytes) == (2, True, 16)
    assert part.load().take(np.arange(2))["x"].tolist() == [6, 8]
    assert seen == [2]


def test_a_part_of_what_was_chosen_is_chosen_of_the_whole():
    whole = select_from(Arrays({"x": np.arange(10)}), lambda n: np.arange(0, n, 2), 5)
    part = whole.part(1, 4).part(1, 3)
    assert (len(part), part.in_memory, part.nbytes) == (2, True, 16)
    assert part.load().take(np.arange(2))["x"].tolist() == [4, 6]


def test_what_was_not_chosen_is_not_sent():
    held = Arrays({"x": np.arange(100_000)})
    some = select_from(held, Range(5, 8), 3)
    made = Derived((some,), MapBatches(doubled, 4), 3, 24)
    assert len(pickle.dumps(made)) > held.nbytes
    sent = made.for_sending()
    assert len(pickle.dumps(sent)) < 2000
    assert sent.load().arrays["x"].tolist() == [10, 12, 14]
    assert held.for_sending() is held


def test_tasks_are_computed_where_the_recipe_is_loaded():
    tasks = {"a": Task("a", np.arange, 4)}
    recipe = FromTasks(tasks, ("a",), lambda x: Arrays({"x": x}), 4, 32)
    assert (len(recipe), recipe.futures, recipe.in_memory) == (4, (), False)
    assert part_of(recipe, 1, 3).load().arrays["x"].tolist() == [1, 2]


def test_a_partition_in_memory_is_its_own_recipe():
    recipe = Loaded(Arrays({"x": np.arange(4)}))
    assert (len(recipe), recipe.nbytes, recipe.in_memory) == (4, 32, True)
    assert part_of(recipe, 1, 3).load().arrays["x"].tolist() == [1, 2]
