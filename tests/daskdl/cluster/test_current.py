"""The client that a program has made."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from distributed import Client, LocalCluster

from daskdl.cluster.current import current_client

OPTIONS = {
    "n_workers": 0,
    "processes": False,
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
}


def test_nobody_made_one_and_nothing_heavy_is_loaded():
    code = (
        "import sys; from daskdl.cluster.current import current_client; "
        "print(current_client(), 'distributed' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["None", "False"]


def test_the_client_until_it_is_closed():
    assert current_client() is None
    with LocalCluster(**OPTIONS) as cluster:
        with Client(cluster) as client:
            assert current_client() is client
        assert current_client() is None
        with Client(cluster, set_as_default=False):
            assert current_client() is None


def test_an_asynchronous_client_is_left_alone():
    async def program():
        async with (
            LocalCluster(**OPTIONS, asynchronous=True) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            assert Client.current() is client
            assert current_client(asynchronous=True) is client
            return current_client()

    assert asyncio.run(program()) is None
