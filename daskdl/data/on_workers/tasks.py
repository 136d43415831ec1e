"""Tasks: recipes as a Dask graph, and a function called with every partition, where it is."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from daskdl.cluster.current import current_client, is_future
from daskdl.compat.dask import Task, TaskRef
from daskdl.data.lazy.counting import Uncounted, count_of
from daskdl.data.lazy.derived import Derived, Loaded
from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.lazy.transformations import itself
from daskdl.data.recipe import Arrays, Loadable, Recipe
from daskdl.data.sources.records import warn
from daskdl.errors import SettingsError

if TYPE_CHECKING:
    from dask.typing import Key
    from distributed import Client, Future

Graph: TypeAlias = "dict[Key, Any]"


def run(source: Any, number: int, *inputs: Any) -> Any:
    """Load a recipe, or call a transformation with loaded inputs."""
    return source(*inputs) if inputs else source.load()


def graph_of(
    recipes: Mapping[int, Loadable],
    named: Callable[[int], Key],
    function: Callable[..., Any] = run,
    more: Mapping[str, Any] | None = None,
) -> tuple[Graph, Graph]:
    """Return the tasks that load recipes, and the tasks behind them.

    A recipe that stands alone is one task. A recipe that is an input of several, or needs Dask's
    own tasks, is a task after its inputs' tasks, so that nothing is loaded twice, and data on a
    worker are used there.

    ``named`` makes a task's key from a recipe's number. The task calls ``function(recipe, i)`` for
    a recipe that stands alone, otherwise ``function(transformation, i, *inputs)``, see :func:`run`.
    ``more`` are keyword arguments, in which a TaskRef stands for a result.
    """
    uses = Counter[int]()
    for recipe in recipes.values():
        _count_uses(recipe, uses)
    name = f"samples-{uuid.uuid4().hex[:12]}"
    behind: Graph = {}
    made: dict[int, Key] = {}

    def key_of(recipe: Loadable) -> Key:
        recipe = recipe.underlying
        if id(recipe) not in made:
            key: Key = (name, len(made))
            made[id(recipe)] = key
            behind[key] = task_of(recipe, key, run, len(made) - 1, {})
        return made[id(recipe)]

    def task_of(
        recipe: Loadable, key: Key, function: Callable[..., Any], i: int, more: Mapping[str, Any]
    ) -> Task:
        recipe = recipe.underlying
        if isinstance(recipe, FromTasks):
            behind.update({k: task for k, task in recipe.tasks.items() if not is_future(task)})
            return Task(key, function, recipe.transform, i, *map(TaskRef, recipe.keys), **more)
        if _stands_alone(recipe, uses):
            return Task(key, function, recipe, i, **more)
        assert isinstance(recipe, Derived), f"{type(recipe).__name__} has inputs, but is no Derived"
        inputs = [TaskRef(key_of(one)) for one in recipe.inputs]
        return Task(key, function, recipe.transform, i, *inputs, **more)

    arguments = {} if more is None else more
    tasks = {
        named(i): task_of(recipe, named(i), function, i, arguments) for i, recipe in recipes.items()
    }
    return tasks, behind


def stand_alone(recipes: Sequence[Loadable]) -> bool:
    """Return whether each can be loaded alone, without loading anything twice."""
    uses = Counter[int]()
    for recipe in recipes:
        _count_uses(recipe, uses)
    return all(_stands_alone(recipe.underlying, uses) for recipe in recipes)


def on_each(
    recipes: Sequence[Loadable],
    function: Callable[[Any, int], Any],
    client: Client | None = None,
) -> list[Any]:
    """Return ``function(partition, i)`` for every recipe.

    The call runs where the partition is: in this process if the recipe contains its data, otherwise
    on the workers of ``client``, of the client that holds the partitions, or of the current one;
    without a client in this process. The partition is freed afterwards.
    """
    client = client or client_of(recipes)
    here = {i: r for i, r in enumerate(recipes) if client is None or r.in_memory}
    there = {i: r for i, r in enumerate(recipes) if i not in here}
    call = partial(_of_loaded, function)
    results = dict(zip(here, each_here(here, call), strict=True))
    if there:
        assert client is not None
        graph, keys = _each_graph(there, call)
        futures = submitted(client, graph, keys)
        try:
            results |= dict(zip(there, client.gather(futures), strict=True))
        finally:
            for future in futures:  # an exception's traceback would keep them
                future.release()
    return [results[i] for i in range(len(recipes))]


def each_here(
    recipes: Mapping[int, Loadable], function: Callable[..., Any], threads: int = 1
) -> Sequence[Any]:
    """Call a function, as :func:`graph_of` takes it, for each recipe, in this process.

    ``threads`` recipes are at work at a time.
    """
    on_workers = any(recipe.futures for recipe in recipes.values())
    if on_workers or stand_alone(list(recipes.values())):
        if threads == 1:
            return [function(recipe, i) for i, recipe in recipes.items()]
        with ThreadPoolExecutor(threads, thread_name_prefix="daskdl-each") as pool:
            return list(pool.map(function, recipes.values(), recipes))
    import dask.threaded

    graph, keys = _each_graph(recipes, function)
    results: Sequence[Any] = dask.threaded.get(graph, keys, num_workers=threads)
    return results


def _of_loaded(function: Callable[[Any, int], Any], source: Any, i: int, *inputs: Any) -> Any:
    return function(run(source, i, *inputs), i)


def _each_graph(recipes: Mapping[int, Loadable], function: Any) -> tuple[Graph, list[Key]]:
    name = f"each-{uuid.uuid4().hex[:12]}"
    tasks, behind = graph_of(recipes, lambda i: (name, i), function)
    return {**behind, **tasks}, list(tasks)


def count(recipes: Sequence[Recipe], client: Client | None = None) -> None:
    """Count the samples of uncounted recipes, and log the records that were left out."""
    uncounted = [r for r in recipes if isinstance(r, Uncounted) and not r.is_counted]
    counted = on_each(uncounted, count_of, client)
    for recipe, one in zip(uncounted, counted, strict=True):
        recipe.learn(one)
    warn([name for one in counted for name in one.bad], sum(one.length for one in counted))


def persisted(recipes: Sequence[Recipe], client: Client | None) -> list[Recipe]:
    """Return recipes of partitions that the workers, or this process, hold from now on."""
    client = client or client_of(recipes)
    if client is None:
        loaded = on_each(recipes, lambda partition, i: partition)
        return [p if isinstance(p, Arrays) else Loaded(p) for p in loaded]
    name = f"persisted-{uuid.uuid4().hex[:12]}"
    there = {i: recipe for i, recipe in enumerate(recipes) if not recipe.in_memory}
    graph, behind = graph_of(there, lambda i: (name, i))
    futures = submitted(client, {**behind, **graph}, list(graph)) if there else []
    at = dict(zip(there, futures, strict=True))
    result: list[Recipe] = []
    for i, recipe in enumerate(recipes):
        key = (name, i)
        if i not in at:
            at[i] = client.scatter({key: recipe.load()}, direct=True)[key]
        length = len(recipe) if recipe.is_counted else None
        one = FromTasks({key: at[i]}, (key,), itself, length, recipe.nbytes)
        result.append(one if recipe.is_counted else Uncounted(one))
    return result


def submitted(
    client: Client, graph: Graph, keys: Sequence[Key], workers: Sequence[str] | None = None
) -> list[Future]:
    """Hand a graph to the scheduler, for all workers or for some."""
    from daskdl.compat.dask import HighLevelGraph, MaterializedLayer

    whole = HighLevelGraph({"daskdl": MaterializedLayer(graph)}, {"daskdl": set()})
    others = True if workers else None  # none of these may be there any more
    futures: list[Future] = client.get(
        whole, list(keys), sync=False, workers=workers, allow_other_workers=others
    )
    return futures


def check_client(where: str, recipes: Sequence[Loadable], client: Client) -> None:
    """Raise a SettingsError for samples on another cluster than the client's."""
    for future in (future for recipe in recipes for future in recipe.futures):
        holder = future.client
        if holder is client:
            continue
        if holder is None or holder.status == "closed":
            raise SettingsError(
                f"{where}: expected samples that a cluster holds, found them persisted by a client "
                "that was closed, with which they went; persist() them again"
            )
        there, here = (one.scheduler_info(n_workers=1) for one in (holder, client))
        if there["id"] != here["id"]:
            raise SettingsError(
                f"{where}: expected samples on the cluster at {client.scheduler.address}, found "
                f"them persisted on the one at {holder.scheduler.address}; give client= of that "
                "one, or persist(client) them on this"
            )
        return  # others are of the same collection


def client_of(recipes: Sequence[Loadable]) -> Client | None:
    """Return the client that holds partitions, or the current one, if there is one."""
    first_future = next((future for recipe in recipes for future in recipe.futures), None)
    return current_client() if first_future is None else first_future.client


def _count_uses(recipe: Loadable, uses: Counter[int]) -> None:
    recipe = recipe.underlying
    uses[id(recipe)] += 1
    if uses[id(recipe)] == 1:
        for one in recipe.inputs:
            _count_uses(one, uses)


def _stands_alone(recipe: Loadable, uses: Counter[int]) -> bool:
    """Return whether no input is used elsewhere or needs Dask's own tasks."""
    inputs = [one.underlying for one in recipe.inputs]
    return not isinstance(recipe, FromTasks) and all(
        uses[id(one)] == 1 and _stands_alone(one, uses) for one in inputs
    )
