"""Order: what may meet in a batch of a fit, and the lengths that fix it."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

from daskdl.data.lazy.blocks import BlockRecipe, Pool, PooledRecipe
from daskdl.data.samples import SampleSet
from daskdl.errors import SettingsError


def ordered(samples: SampleSet, shuffle: str) -> SampleSet:
    """Return samples as a fit draws them that is told "global" or "local".

    By "global" the blocks of all partitions are pooled. Those of samples that lie in the caller's
    memory are not: what is sent to a worker stays there.
    """
    if shuffle not in ("global", "local"):
        raise SettingsError(f"shuffle: expected 'global' or 'local', found {shuffle!r}")
    recipes = samples.recipes
    blocked = [recipe for recipe in recipes if isinstance(recipe, BlockRecipe)]
    if shuffle == "local":
        return samples if len(blocked) == len(recipes) else samples.stream()
    if len(blocked) < max(2, len(recipes)) or any(recipe.in_memory for recipe in recipes):
        return samples
    pool = Pool([block for recipe in blocked for block in recipe.blocks])
    bounds = pairwise(accumulate(map(len, blocked), initial=0))
    return SampleSet([PooledRecipe(pool, a, b) for a, b in bounds], samples.functions)


def block_lengths(samples: SampleSet) -> dict[str, Any]:
    """Return the lengths of the blocks, which fix the order, if there are any."""
    recipes = samples.recipes
    if isinstance(recipes[0], PooledRecipe):
        return {"pool": [len(block) for block in recipes[0].pool.blocks]}
    blocked = [recipe for recipe in recipes if isinstance(recipe, BlockRecipe)]
    return {"blocks": [[len(block) for block in one.blocks] for one in blocked]} if blocked else {}
