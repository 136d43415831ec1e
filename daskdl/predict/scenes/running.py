"""Running: the tasks of a scene's tiles on a cluster or here, a few at a time, with progress."""

from __future__ import annotations

import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dask.utils import format_time

from daskdl.compat.dask import HighLevelGraph, Task, TaskRef
from daskdl.data.on_workers.tasks import submitted
from daskdl.predict.scenes.tasks import Target
from daskdl.predict.scenes.tiles import Place, Tiling

#: Tiles submitted ahead for each thread of a worker, when tiles are assigned to workers.
AHEAD = 2
#: Seconds between two looks for workers that have joined.
LOOK = 2.0
#: Seconds between two lines of progress, in a file and on a terminal.
LOG, TERMINAL = 30.0, 0.5


def run_tiles(
    tiling: Tiling,
    targets: Mapping[Place, Target] | None,
    client: Any,
    tell: Callable[[Place, Any], None],
) -> None:
    """Compute tiles; call ``tell`` with each tile's place and its task's result.

    Tiles are written to ``targets``; without them all tiles are returned.
    """
    name = f"scene-{uuid.uuid4().hex}"
    sent = bool(client) and isinstance(tiling.cells, np.ndarray)
    sent = sent and not isinstance(tiling.cells, np.memmap)
    model, sources = tiling.model()
    tiles, behind = tiling.tasks(name, model, targets, sent, ranked=True)
    graph = {key: task for one in sources for key, task in dict(one.__dask_graph__()).items()}
    graph |= behind
    cells = [int(np.prod([s[i] for s, i in zip(tiling.chunks, k[2:], strict=True)])) for k in tiles]
    meter = Meter(len(tiles), float(sum(cells)))
    size = dict(zip(tiles, cells, strict=True))

    def done(key: Any, value: Any) -> None:
        tell(key[2:], value)
        meter.advance(size[key])

    if client:
        fed = tiling.blend == "none" and (sent or tiling.strips[0] > 0)
        _on_cluster(client, tiles, graph, fed, done)
    elif tiles:
        _here(tiles, graph, done)
    meter.stop()


def gathered(tiling: Tiling, client: Any) -> Any:
    """Return the result of a scene in memory, computed by the workers of a client."""
    ends = [np.cumsum((0, *sizes)).tolist() for sizes in tiling.chunks]
    result = np.empty([end[-1] for end in ends], tiling.common.like.dtype)

    def put(place: Place, tile: Any) -> None:
        result[tuple(slice(e[i], e[i + 1]) for e, i in zip(ends, place, strict=True))] = tile

    run_tiles(tiling, None, client, put)
    return result


def _on_cluster(
    client: Any, tiles: dict[Any, Task], graph: dict[Any, Any], fed: bool, done: Any
) -> None:
    """Submit tiles, all at once or ``fed``; call ``done`` as each ends.

    Each worker is fed a few tiles of its part of the scene, then half of the largest remaining
    part.
    """
    from distributed import as_completed

    keys, running = [*tiles], as_completed()
    worker_of: dict[Any, Any] = {}  # keys are futures that are not done
    threads = (client.nthreads() if fed else None) or {None: len(keys)}  # workers may come later
    ends = np.linspace(0, len(keys), len(threads) + 1).astype(int).tolist()
    parts = {worker: range(*ends[i : i + 2]) for i, worker in enumerate(threads)}

    def submit(worker: Any, many: int) -> None:
        if not parts.get(worker):
            largest = max(parts, key=lambda one: len(parts[one]))
            half = len(parts[largest]) // 2
            parts[largest], parts[worker] = parts[largest][:half], parts[largest][half:]
        some = [keys[i] for i in parts[worker][:many]]
        parts[worker] = parts[worker][many:]
        if some:
            asked = {**graph, **{key: tiles[key] for key in some}}
            futures = submitted(client, asked, some, [worker] if worker else None)
            worker_of.update(dict.fromkeys(futures, worker))
            running.update(futures)

    shared = (
        submitted(client, graph, [*graph]) if fed else []
    )  # otherwise they would be deleted after the first tiles
    looked = time.monotonic()
    try:
        for worker, n in threads.items():
            submit(worker, AHEAD * n)
        for batch in running.batches():
            free: Counter[Any] = Counter()
            for future in batch:
                done(future.key, future.result())
                future.release()
                free[worker_of.pop(future)] += 1
            if fed and time.monotonic() - looked > LOOK:
                joined, looked = client.nthreads().items() - threads.items(), time.monotonic()
                threads |= joined
                free.update({worker: AHEAD * n for worker, n in joined})
            for worker, n in free.items():
                submit(worker, n)
    except BaseException:  # such as Ctrl-C: its traceback would keep the futures alive
        client.cancel([*worker_of], force=True)
        raise
    finally:
        shared.clear()


def _here(tiles: dict[Any, Task], graph: dict[Any, Any], done: Any) -> None:
    import dask
    from dask.callbacks import Callback
    from dask.delayed import Delayed

    def after(key: Any, value: Any, *_: Any) -> None:
        if key in tiles:
            done(key, value)

    last = f"ended-{uuid.uuid4().hex}"
    whole = {**graph, **tiles, last: Task(last, lambda *_: None, *map(TaskRef, tiles))}
    scheduler = dask.config.get("scheduler", None)
    # An existing client, which must not be used here, has set itself as the scheduler.
    scheduler = "threads" if scheduler in (None, "dask.distributed") else scheduler
    with Callback(posttask=after):
        Delayed(last, HighLevelGraph.from_collections(last, whole, [])).compute(scheduler=scheduler)


class Meter:
    """Writes the tiles done, pixels per second and the time left to standard error.

    ``total`` tiles have ``cells`` numbers of the result together.
    """

    def __init__(self, total: int, cells: float) -> None:
        self._total, self._cells = total, cells
        self._tiles, self._done = 0, 0.0
        self._terminal = sys.stderr.isatty()
        self._began = self._shown = time.monotonic()

    def advance(self, cells: int) -> None:
        """Count a tile, and write a line if it is time for one."""
        self._tiles, self._done = self._tiles + 1, self._done + cells
        now = time.monotonic()
        if now - self._shown > (TERMINAL if self._terminal else LOG):
            self._shown = now
            rate = self._done / (now - self._began)
            line = (
                f"predict: tile {self._tiles} of {self._total}, {rate / 1e6:.3g} Mpixel/s, "
                f"{format_time((self._cells - self._done) / rate)} left"
            )
            line = f"\r{line} " if self._terminal else f"{line}\n"
            print(line, file=sys.stderr, end="", flush=True)

    def stop(self) -> None:
        """End the line of a terminal."""
        if self._terminal and self._shown > self._began:
            print(file=sys.stderr)
