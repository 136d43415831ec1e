from __future__ import annotations

import numpy as np

from daskdl.scaling.synthetic import synthetic


def numbered(rng, n):
    x = rng.random((n, 3))
    return x, np.arange(n)


def test_a_few_samples_are_as_many_as_one_likes() -> None:
    samples = synthetic(numbered, [100, 101], held=5)
    assert samples.lengths == (100, 101)
    first, second = (recipe.load() for recipe in samples.recipes)
    np.testing.assert_array_equal(first.take(np.array([0, 4, 5, 99]))["y"], [0, 4, 0, 4])
    assert first.nbytes == samples.recipes[0].nbytes == 5 * (3 * 8 + 8)
    assert (first.take(np.arange(5))["x"] != second.take(np.arange(5))["x"]).all()


def test_a_part_has_the_samples_of_the_whole() -> None:
    (recipe,) = synthetic(numbered, [20], held=7).recipes
    part = recipe.part(4, 20).part(5, 9)
    assert len(part) == 4
    whole, some = recipe.load().take(np.arange(9, 13)), part.load().take(np.arange(4))
    np.testing.assert_array_equal(some["x"], whole["x"])
    np.testing.assert_array_equal(synthetic(numbered, [20], held=7).head(2)["y"], [0, 1])
