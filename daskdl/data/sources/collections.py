"""Arrays and Dask's collections as samples; a partition is used where it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from daskdl.cluster.current import is_future
from daskdl.compat.dask import Alias, Task, TaskRef
from daskdl.data.lazy.counting import Uncounted
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.lazy.transformations import itself
from daskdl.data.nested import flat
from daskdl.data.partition import Partition
from daskdl.data.ragged import Ragged, stacked
from daskdl.data.recipe import Arrays, Recipe
from daskdl.data.sources.records import Records, check_on_error
from daskdl.data.sources.zarr import common_length, in_partitions, slice_recipes
from daskdl.errors import DataError
from daskdl.masked import unmasked

if TYPE_CHECKING:
    from dask.typing import Key

    from daskdl.data.samples import SampleSet


def tasks_by_partition(collection: Any) -> list[tuple[dict[Key, Any], Key]]:
    """Return the key of each partition of a Dask collection, with the tasks that it needs.

    ``to_delayed`` or ``dask.optimize`` gives the task of a partition of frames, arrays, bags,
    delayed objects and xarray's objects. A frame's expression must be optimized first: its own keys
    differ from the optimized graph's.

    Shuffles use tasks: a peer-to-peer shuffle needs a barrier on the cluster. A partition that is
    loaded alone, or again after its worker died, cannot wait for one.
    """
    import dask
    from dask.delayed import Delayed

    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        if isinstance(collection, Delayed):
            parts = list(dask.optimize(collection))
        else:
            parts = np.asarray(collection.to_delayed(optimize_graph=True), object).ravel().tolist()
    graphs = {id(graph): graph for graph in (part.__dask_graph__() for part in parts)}
    tasks: dict[Key, Any] = {key: one for graph in graphs.values() for key, one in graph.items()}
    keys = [part.key for part in parts]
    needed = {key for one in tasks.values() for key in getattr(one, "dependencies", ())}
    if any(key not in tasks for key in [*keys, *needed]):
        # What is computed already is a Future, which optimizing an array leaves out.
        raw = collection.__dask_graph__()
        tasks |= {key: one for key, one in raw.items() if is_future(one)}
    return [(_behind(key, tasks), key) for key in keys]


def _behind(key: Key, tasks: dict[Key, Any]) -> dict[Key, Any]:
    """Return the tasks that a key needs, with its own."""
    from dask.core import get_dependencies

    needed: dict[Key, Any] = {}
    waiting = [key]
    while waiting:
        one = waiting.pop()
        if one in needed:
            continue
        task = tasks[one]
        if not is_future(task):
            waiting.extend(get_dependencies(tasks, one))
        if isinstance(
            task, Alias
        ):  # when Dask joins tasks to one it may lose what stands behind it
            task = Task(one, itself, TaskRef(task.target))
        needed[one] = task
    return needed


def from_arrays(
    cls: type[SampleSet], /, *, partitions: int | None = None, **arrays: ArrayLike | Any
) -> SampleSet:
    """Make a set of arrays in memory, Dask arrays, xarray's of either, or zarr arrays.

    Parameters
    ----------
    partitions : int, optional
        Number of partitions of nearly equal length, at most the number of samples. By default
        one for arrays in memory, and one for each chunk along the first axis of Dask and zarr
        arrays.
    **arrays : array_like, Ragged, dask.array.Array, DataArray or zarr.Array (n, ...)
        Arrays by name; for training ``x`` and ``y``, which may be tuples or mappings of several
        arrays. Other arrays are cut like a Dask array among them.

    Raises
    ------
    DataError
        When the arrays differ in length, are empty, or have masked elements.

    Examples
    --------
    >>> from daskdl import SampleSet
    >>> samples = SampleSet.from_arrays(x=np.zeros((10, 3)), y=np.arange(10), partitions=2)
    >>> samples.lengths, samples.head(2)["y"]
    ((5, 5), array([0, 1]))
    """
    arrays = {name: _bare(name, array) for name, array in flat(arrays).items()}
    values = arrays.values()
    recipes: Sequence[Recipe]
    if any(hasattr(value, "__dask_graph__") for value in values):
        recipes = from_dask_arrays(arrays)
    elif arrays and all(hasattr(v, "chunks") and hasattr(v, "store") for v in values):
        recipes = slice_recipes(partial(itself, arrays), partitions, "SampleSet.from_arrays")
    else:
        by_name = {name: _column(name, value) for name, value in arrays.items()}
        common_length("SampleSet.from_arrays", by_name)
        recipes = [Arrays(by_name)]
    return in_partitions(cls, recipes, partitions)


def _bare(name: str, array: Any) -> Any:
    """Return the array inside an xarray object; any other array unchanged."""
    if hasattr(array, "dims") and hasattr(array, "coords"):
        array = array.data
    if np.ma.is_masked(array):
        raise DataError(
            f"SampleSet.from_arrays, {name}: expected no masked elements, found "
            f"{np.ma.getmaskarray(array).sum()}; array.filled(np.nan) makes missing numbers of them"
        )
    return array


def _column(name: str, value: Any) -> Any:
    """Return a value in memory as an array; lists of different lengths as Ragged."""
    if isinstance(value, Ragged):
        return value
    try:
        array = np.asarray(value)
    except ValueError:
        return stacked(value, f"SampleSet.from_arrays, {name}")
    if not array.ndim and array.dtype.kind == "O":
        raise DataError(
            f"SampleSet.from_arrays, {name}: expected an array (n, ...), found "
            f"{type(value).__name__}; make one of it, as toarray() does of a sparse matrix"
        )
    return array


def from_bag(
    cls: type[SampleSet],
    /,
    bag: Any,
    function: Callable[[Any], Any] | None = None,
    on_error: str = "raise",
) -> SampleSet:
    """Make a set of the elements of a Dask Bag, with its partitions.

    Parameters
    ----------
    bag : dask.bag.Bag
    function : callable, optional
        From an element to a sample: a dict of arrays by name, a pair (x, y), or x. By default
        elements are samples already. Arrays whose first axes have different lengths become a
        :class:`~daskdl.data.Ragged` column.
    on_error : "raise" or "skip"
        What to do with an element that gives no sample, or a sample of another shape than most
        of its partition: raise a DataError that names it, or leave it out and name it in
        :attr:`SampleSet.bad`.
    """
    check_on_error(on_error)
    recipes = []
    for i, (tasks, key) in enumerate(tasks_by_partition(bag)):
        records = Records(function or itself, on_error, f"bag {i}, element")
        recipes.append(Uncounted(FromTasks(tasks, (key,), records, None, 0)))
    return cls(recipes)


def from_delayed(
    cls: type[SampleSet],
    /,
    values: Iterable[Any],
    function: Callable[[Any], Any] | None = None,
    lengths: Sequence[int] | None = None,
) -> SampleSet:
    """Make a set of delayed objects or Futures; each is a partition.

    Parameters
    ----------
    values : sequence of dask.delayed.Delayed or distributed.Future
        Each is a dict of arrays by name, with a common first axis.
    function : callable, optional
        Makes such a dict of each value.
    lengths : sequence of int, optional
        Samples of each; by default the workers count them.
    """
    recipes: list[Recipe] = []
    for i, value in enumerate(values):
        tasks, key = (
            ({value.key: value}, value.key)
            if is_future(value)
            else next(iter(tasks_by_partition(value)))
        )
        transform = partial(partition_of, function, f"delayed object {i}")
        if lengths is None:
            recipes.append(Uncounted(FromTasks(tasks, (key,), transform, None, 0)))
        else:
            recipes.append(FromTasks(tasks, (key,), transform, int(lengths[i]), 0))
    return cls(recipes)


def from_dask_arrays(arrays: Mapping[str, Any]) -> list[Recipe]:
    """Return a recipe for each chunk along the first axis of Dask arrays.

    Other arrays, and those with other chunks, are cut like the first one.
    """
    import dask.array as da

    for name, array in arrays.items():
        if hasattr(array, "__dask_graph__") and not isinstance(array, da.Array):
            raise DataError(
                f"SampleSet.from_arrays: expected arrays, found {name} as {type(array).__name__}; "
                "there are from_dataframe, from_bag and from_delayed"
            )
    first = next(a for a in arrays.values() if isinstance(a, da.Array))
    rows = first.chunks[0]
    unknown = any(np.isnan(rows))
    aligned = {}
    for name, array in arrays.items():
        if not isinstance(array, da.Array):
            if unknown:
                raise DataError(
                    f"SampleSet.from_arrays: expected all as Dask arrays, since those have chunks "
                    f"of unknown lengths, found {name} as {type(array).__name__}"
                    "; make it a Dask array, or call compute_chunk_sizes()"
                )
            array = da.from_array(np.asarray(array), chunks=(rows, *(-1,) * (np.ndim(array) - 1)))
        if unknown and (not np.isnan(array.chunks[0]).all() or len(array.chunks[0]) != len(rows)):
            raise DataError(
                "SampleSet.from_arrays: expected the same chunks in all arrays, of unknown "
                f"lengths, found {len(rows)} and {array.chunks[0]} of {name}; call "
                "compute_chunk_sizes() on them first"
            )
        whole = dict.fromkeys(range(1, array.ndim), -1)
        aligned[name] = array.rechunk(whole if unknown else {0: rows, **whole})
    parts = {name: tasks_by_partition(array) for name, array in aligned.items()}
    schema = {name: (a.shape[1:], a.dtype) for name, a in aligned.items()}
    transform = partial(arrays_of, tuple(aligned))
    recipes: list[Recipe] = []
    for i, count in enumerate(rows):
        some = [part[i] for part in parts.values()]
        tasks = {key: task for one, _ in some for key, task in one.items()}
        keys = tuple(key for _, key in some)
        if unknown:
            recipes.append(Uncounted(FromTasks(tasks, keys, transform, None, 0, schema)))
            continue
        nbytes = sum(
            int(count * np.prod(a.shape[1:], dtype=float)) * a.dtype.itemsize
            for a in aligned.values()
        )
        recipes.append(FromTasks(tasks, keys, transform, int(count), nbytes, schema))
    return recipes


def arrays_of(names: Sequence[str], *arrays: Any) -> Arrays:
    """Return the partition of arrays with these names."""
    by_name = {
        name: np.asarray(unmasked(f"SampleSet, {name}", array))
        for name, array in zip(names, arrays, strict=True)
    }
    if len({len(a) for a in by_name.values()}) > 1:
        raise DataError(
            "SampleSet: expected arrays of one length, found "
            f"{ {name: len(a) for name, a in by_name.items()} }"
            "; give one entry for each sample in every array"
        )
    return Arrays(by_name)


def partition_of(function: Callable[[Any], Any] | None, name: str, value: Any) -> Partition:
    """Return the partition of a delayed dict of columns; a partition unchanged."""
    if function is not None:
        value = function(value)
    if isinstance(value, dict):
        value = flat(value)
        return arrays_of(tuple(value), *value.values())
    if not isinstance(value, Partition):
        raise DataError(
            f"SampleSet.from_delayed: expected {name} to be a dict of arrays, found "
            f"{type(value).__name__}; give function= that makes one of it"
        )
    return value
