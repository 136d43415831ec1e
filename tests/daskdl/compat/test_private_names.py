"""Private names of other packages do what daskdl takes them for; a failure names the release."""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import version
from typing import Any

import numba
import numpy as np
import pytest
from distributed import Client, Lock, WorkerPlugin
from distributed.comm import connect, listen

from daskdl.compat.dask import (
    Alias,
    HighLevelGraph,
    MaterializedLayer,
    Task,
    TaskRef,
    is_plain_tcp,
    scheduler_operation,
    stop_renewing,
    stream_of,
    take_socket,
    wait_for,
    worker_operation,
)
from daskdl.compat.numba_compiler import cgutils, excinfo_ptr_t
from tests.daskdl.clusters import small_client

#: Messages of failed tests.
DASK = f"dask {version('dask')}, distributed {version('distributed')}: mend daskdl/compat"
NUMBA = f"numba {version('numba')}, llvmlite {version('llvmlite')}: mend daskdl/compat"


class Answering(WorkerPlugin):
    name = "answering"

    def setup(self, worker: Any) -> None:
        worker.handlers["daskdl_test_answer"] = self.answer

    async def answer(self, number: int) -> int:
        return number + 1


@pytest.fixture(scope="module")
def client() -> Any:
    with small_client() as client:
        client.register_plugin(Answering())
        yield client


def test_a_graph_of_tasks_is_computed_with_annotations(client: Client) -> None:
    (worker,) = client.nthreads()
    graph = {"a": Task("a", sum, [1, 2]), "b": Task("b", abs, TaskRef("a"))}
    where = {"workers": lambda key: [worker], "allow_other_workers": True}
    layers = {"daskdl": MaterializedLayer(graph, annotations=where)}
    futures = client.get(HighLevelGraph(layers, {"daskdl": set()}), ["b"], sync=False)
    assert futures[0].result(20) == 3, DASK


def test_an_alias_names_its_target() -> None:
    assert Alias("b", "a").target == "a", DASK
    assert Alias("b", "a").dependencies == {"a"}, DASK


def test_requests_to_the_scheduler_and_to_a_worker(client: Client) -> None:
    (worker,) = client.nthreads()
    for name in ("ncores", "ncores_running", "processing", "who_has", "broadcast"):
        scheduler_operation(client, name)
    running = client.sync(scheduler_operation(client, "ncores_running"))
    assert list(running) == [worker], DASK

    async def ask() -> Any:
        return await worker_operation(client, worker, "daskdl_test_answer")(number=1)

    assert client.sync(ask) == 2, DASK


def test_waiting_in_the_loop_of_a_client(client: Client) -> None:
    future = client.submit(abs, -3)
    client.sync(wait_for, [future])
    assert future.status == "finished", DASK


def test_a_lock_stops_renewing_its_lease(client: Client) -> None:
    lock = Lock("lock", scheduler_rpc=client.scheduler, loop=client.loop)
    assert lock.acquire(timeout=5)
    stop_renewing(client, lock)
    lock.release()
    assert "refresh_callback" in vars(lock), DASK


def test_the_socket_of_a_plain_connection_is_taken() -> None:
    async def taken() -> bytes:
        arrived: asyncio.Queue[Any] = asyncio.Queue()
        async with listen("tcp://127.0.0.1:0", arrived.put) as listener:
            one = await connect(listener.contact_address)
            other = await arrived.get()
            assert is_plain_tcp(one), DASK
            assert is_plain_tcp(other), DASK
            sockets = [take_socket(stream_of(comm)) for comm in (one, other)]
            await asyncio.get_running_loop().sock_sendall(sockets[0], b"x")
            received = await asyncio.get_running_loop().sock_recv(sockets[1], 1)
            for socket in sockets:
                socket.close()
            one.abort()
            other.abort()
            return received

    assert asyncio.run(taken()) == b"x", DASK


def test_helpers_for_llvm_code() -> None:
    for name in (
        "alloca_once",
        "alloca_once_value",
        "for_range",
        "gep_inbounds",
        "get_or_insert_function",
        "pack_array",
        "pointer_add",
        "raw_memcpy",
        "unpack_tuple",
    ):
        assert inspect.isfunction(inspect.unwrap(getattr(cgutils, name))), NUMBA
    assert excinfo_ptr_t.is_pointer, NUMBA


def test_the_cache_of_a_dispatcher() -> None:
    @numba.njit(cache=True)
    def twice(x: Any) -> Any:
        return x + x

    assert twice(np.float32(2)) == 4
    for name in ("load_overload", "save_overload", "cache_path", "_cache_file"):
        assert hasattr(twice._cache, name), NUMBA
    for name in ("_index_path", "_source_stamp"):
        assert hasattr(twice._cache._cache_file, name), NUMBA
