"""The samples of a lazy collection are what compute() gives, whatever made it."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from daskdl import SampleSet

TABLE = pd.DataFrame(
    {"a": np.arange(40.0), "b": np.arange(40) % 5, "y": np.arange(40) % 2, "c": np.arange(40) * 0.5}
)
TABLE.loc[::7, "c"] = np.nan
SMALL = pd.DataFrame({"b": range(5), "k": np.arange(5.0)})

FRAMES = {
    "mask": lambda f: f[f.b > 1],
    "query": lambda f: f.query("a < 30"),
    "isin": lambda f: f[f.b.isin([0, 1, 3])],
    "loc": lambda f: f.loc[3:33],
    "sample": lambda f: f.sample(frac=0.7, random_state=1),
    "dropna": lambda f: f.dropna(subset=["c"]),
    "map_partitions": lambda f: f.map_partitions(lambda part: part[part.a % 3 > 0], meta=f._meta),
    "assign": lambda f: f.assign(a=f.a + f.a.mean()),
    "cumsum": lambda f: f.assign(a=f.a.cumsum()),
    "merge": lambda f: f.merge(SMALL, on="b").drop(columns="k"),
    "concat": lambda f: dd.concat([dd.from_pandas(TABLE.iloc[:3], npartitions=1), f]),
    "shuffle": lambda f: f.shuffle("b"),
    "sort": lambda f: f.sort_values("a"),
    "repartition": lambda f: f.repartition(npartitions=2),
    "unique": lambda f: f.drop_duplicates(),
    "delayed": lambda f: dd.from_delayed(f.to_delayed(), meta=f._meta),
    "persist": lambda f: f.persist(),
}
#: Expressions that need an index of known order, which others lose; they come first.
INDEXED = {"loc", "cumsum", "concat", "repartition"}


def values(array: np.ndarray) -> np.ndarray:
    return np.sort(np.asarray(array, float))


def computed(samples: SampleSet) -> np.ndarray:
    # Dask before 2025.4 cannot fuse the tasks of an array made from dd.from_delayed.
    array: np.ndarray = samples.to_dask_array("x").compute(optimize_graph=False)
    return array


def rows_are_kept(name: str) -> SampleSet:
    """Check the rows of an expression and return them as samples."""
    frame = FRAMES[name](dd.from_pandas(TABLE, npartitions=4))
    samples = SampleSet.from_dataframe(frame, x=["a"], y="y")
    want = values(frame.a.compute())
    assert np.array_equal(values(computed(samples)[:, 0]), want)
    assert len(samples) == len(want)
    return samples


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_rows_of_each_expression(name: str) -> None:
    with dask.config.set(scheduler="sync"):
        rows_are_kept(name)


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(sorted(INDEXED)), max_size=2, unique=True),
    st.lists(st.sampled_from(sorted({*FRAMES} - INDEXED)), max_size=3, unique=True),
    st.integers(1, 5),
)
def test_rows_of_expressions_of_expressions(
    first: list[str], then: list[str], partitions: int
) -> None:
    with dask.config.set(scheduler="sync"):
        frame = dd.from_pandas(TABLE, npartitions=partitions)
        for name in [*first, *then]:
            frame = FRAMES[name](frame)
        want = frame.compute()
        if not len(want):
            return
        samples = SampleSet.from_dataframe(frame, x=["a"], y="y")
        got = computed(samples)[:, 0]
        np.testing.assert_allclose(values(got), values(want.a))


ARRAYS = {
    "slice": lambda x: x[3:],
    "step": lambda x: x[::2],
    "rechunk": lambda x: x.rechunk((7, 2)),
    "mask": lambda x: x[x[:, 0] > 20],
    "scaled": lambda x: (x - x.mean(axis=0)) / x.std(),
    "concatenated": lambda x: da.concatenate([x, 2 * x]),
    "persist": lambda x: x.persist(),
    "taken": lambda x: x[np.array([5, 1, 9])],
}


#: Functions for which Dask needs known lengths; without, mean and deviation are NaN.
NEED_LENGTHS = {"rechunk", "step", "taken", "slice", "scaled"}


@pytest.mark.slow
@given(st.lists(st.sampled_from(sorted(ARRAYS)), max_size=3, unique=True), st.integers(2, 12))
def test_rows_of_arrays(names: list[str], rows: int) -> None:
    with dask.config.set(scheduler="sync"):
        x = da.from_array(np.arange(120.0).reshape(30, 4), chunks=(rows, 3))
        for name in names:
            if name in NEED_LENGTHS and np.isnan(x.chunks[0]).any():
                continue
            if name in ("scaled", "taken") and not x.shape[0]:
                continue  # an empty array has no mean and no rows to take
            x = ARRAYS[name](x)
        want = x.compute()
        if not len(want):
            return
        got = SampleSet.from_arrays(x=x).to_dask_array("x").compute()
        assert np.array_equal(got, want)
        if not np.isnan(x.chunks[0]).any():
            data = xr.DataArray(x, dims=("time", "feature")).to_dataset(name="x")
            samples = SampleSet.from_xarray(data, x="x", dim="time")
            assert np.array_equal(samples.to_dask_array("x").compute().reshape(want.shape), want)


BAGS = {
    "filter": lambda bag: bag.filter(lambda v: v % 3 > 0),
    "map": lambda bag: bag.map(lambda v: v + 1),
    "repartition": lambda bag: bag.repartition(npartitions=2),
    "partitions": lambda bag: bag.map_partitions(lambda part: [2 * v for v in part]),
    "distinct": lambda bag: bag.distinct(),
    "concat": lambda bag: db.concat([bag, bag]),
    "persist": lambda bag: bag.persist(),
}


@given(st.lists(st.sampled_from(sorted(BAGS)), max_size=3, unique=True), st.integers(1, 4))
def test_elements_of_bags(names: list[str], partitions: int) -> None:
    with dask.config.set(scheduler="sync"):
        bag = db.from_sequence(range(20), npartitions=partitions)
        for name in names:
            bag = BAGS[name](bag)
        samples = SampleSet.from_bag(bag, lambda v: {"x": np.float32([v])})
        got = computed(samples)[:, 0]
        assert np.array_equal(values(got), values(bag.compute()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mask", "merge", "shuffle", "persist", "loc", "sort"])
def test_rows_on_workers(name, current) -> None:
    samples = rows_are_kept(name)
    assert len(samples.persist(current)) == len(samples)
