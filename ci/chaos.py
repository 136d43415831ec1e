"""``python -m ci.chaos --minutes N --seed S``: random faults on random small trainings.

Each trial fits a small problem on a cluster of processes, while workers are killed or stopped for a
while and strangers connect to their ports, and compares the weights with an undisturbed run in this
process. The exit code is 1 if any weights differ or a fit hangs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import dask
import numpy as np
import psutil

from daskdl.data import SampleSet
from daskdl.errors import DaskdlError
from daskdl.nn import BatchNorm, Conv2d, CrossEntropyLoss, Flatten, Linear, ReLU, Sequential
from daskdl.optim import SGD, Adam
from daskdl.train import Trainer

#: Seconds after which a fit counts as hung: many times the cost of the slowest fault, and more than
#: a fit waits for workers before it raises an error.
PATIENCE = 600.0
#: Same weights, an error of daskdl, other weights or another error, and no end.
OUTCOMES = ("same", "told", "wrong", "hung")


@dataclass(frozen=True)
class Trial:
    """A trial: its network, its settings and its faults."""

    network: str
    shards: int
    workers: int
    engine: str
    epochs: int
    faults: tuple[str, ...]
    seed: int


def drawn(rng: np.random.Generator) -> Trial:
    """Return a random trial."""
    some = rng.permutation(list(FAULTS))[: rng.integers(1, 4)]
    return Trial(
        network=str(rng.choice(["dense", "pictures"])),
        shards=int(rng.integers(2, 7)),
        workers=int(rng.integers(2, 4)),
        engine=str(rng.choice(["gang", "gang", "graph"])),
        epochs=int(rng.integers(20, 80)),
        faults=tuple(sorted(map(str, some))),
        seed=int(rng.integers(1 << 31)),
    )


def fitted(network: str, shards: int, epochs: int, **options: Any) -> bytes:
    """Fit a network and return its weights."""
    rng = np.random.default_rng(shards)
    x = rng.standard_normal((96, 8, 8, 2), np.float32)
    y = (x.mean((1, 2, 3)) > 0).astype(np.int64)
    first = [Conv2d(2, 8, 3, padding=1, seed=1), BatchNorm(8), ReLU()]
    body = first if network == "pictures" else []
    width = 512 if network == "pictures" else 128
    model = Sequential(*body, Flatten(), Linear(width, 16, seed=2), ReLU(), Linear(16, 2, seed=3))
    method = SGD(0.05, momentum=0.9) if network == "pictures" else Adam(1e-2)
    trainer = Trainer(model, CrossEntropyLoss(), method, seed=4)
    samples = SampleSet.from_arrays(x=x, y=y, partitions=shards)
    trainer.fit(samples, epochs=epochs, batch_size=16, progress=False, **options)
    return trainer.model.flat.tobytes()


undisturbed = cache(lambda *trial: fitted(*trial, client=False))


# --- faults: functions that disturb a worker, and return afterwards


def kill(pid: int, rng: np.random.Generator) -> None:
    """Kill a worker; its nanny starts another."""
    os.kill(pid, signal.SIGKILL)


def stop(pid: int, rng: np.random.Generator) -> None:
    """Stop a worker for up to fifteen seconds."""
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(float(rng.choice([0.05, 0.5, 3, 15])))
    finally:
        os.kill(pid, signal.SIGCONT)


def garbage(pid: int, rng: np.random.Generator) -> None:
    """Send random bytes to the worker's ports, and wait for an answer."""

    def speak(stranger: socket.socket) -> None:
        stranger.sendall(rng.bytes(int(rng.choice([1, 8, 100, 70_000]))))
        stranger.recv(1000)

    _at_ports(pid, speak)


def half_open(pid: int, rng: np.random.Generator) -> None:
    """Connect and send nothing, or the beginning of a frame, for some seconds."""

    def wait(stranger: socket.socket) -> None:
        if rng.random() < 0.5:
            stranger.sendall((3).to_bytes(8, "little"))
        time.sleep(float(rng.choice([0.2, 2])))

    _at_ports(pid, wait)


def scan(pid: int, rng: np.random.Generator) -> None:
    """Connect to all ports and close at once, by a reset."""

    def leave(stranger: socket.socket) -> None:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    for _ in range(20):
        _at_ports(pid, leave)


FAULTS: dict[str, Callable[[int, np.random.Generator], None]] = {
    "kill": kill, "stop": stop, "garbage": garbage, "half-open": half_open, "scan": scan,
}  # fmt: skip


def _at_ports(pid: int, do: Callable[[socket.socket], None]) -> None:
    """Connect to each port of a worker and of this process with the scheduler, and do something."""
    processes = psutil.Process(pid), psutil.Process()
    sockets = (c for process in processes for c in process.net_connections("tcp"))
    for port in sorted({c.laddr.port for c in sockets if c.status == psutil.CONN_LISTEN}):
        with (
            contextlib.suppress(OSError),  # the port is gone, hangs up, or sends nothing
            socket.create_connection(("127.0.0.1", port), 2) as stranger,
        ):
            stranger.settimeout(0.5)
            do(stranger)


class Disturbance(threading.Thread):
    """Repeats a trial's faults until the end of the fit is signalled."""

    def __init__(self, trial: Trial, client: Any) -> None:
        super().__init__(daemon=True)
        self.trial, self.client, self.over = trial, client, threading.Event()
        self.done: Counter[str] = Counter()

    def run(self) -> None:
        """Repeat faults until the end."""
        rng = np.random.default_rng(self.trial.seed)
        while not self.over.wait(float(rng.exponential(0.4))):
            fault = str(rng.choice(self.trial.faults))
            if fault == "kill" and self.done["kill"] >= 3:  # more than a fit may lose
                continue
            with contextlib.suppress(OSError, psutil.Error):
                workers = [p for p in psutil.Process().children(recursive=True) if _is_worker(p)]
                if not workers:  # all were killed, and restart
                    continue
                FAULTS[fault](workers[int(rng.integers(len(workers)))].pid, rng)
                self.done[fault] += 1


def _is_worker(process: psutil.Process) -> bool:
    """Return whether a process is a worker, and not a resource tracker."""
    return "spawn_main" in " ".join(process.cmdline())


def outcome(trial: Trial, client: Any) -> tuple[str, str, Counter[str]]:
    """Run a trial; return its outcome, the error's message, and the count of each fault."""
    expected = undisturbed(trial.network, trial.shards, trial.epochs)
    results: list[bytes | Exception] = []

    def work() -> None:
        try:
            again = {"client": client, "engine": trial.engine}
            results.append(fitted(trial.network, trial.shards, trial.epochs, **again))
        except Exception as error:  # its type decides the outcome
            results.append(error)

    fit, disturbance = threading.Thread(target=work, daemon=True), Disturbance(trial, client)
    disturbance.start()
    fit.start()
    fit.join(PATIENCE)
    disturbance.over.set()
    disturbance.join(60)
    if not results:
        return "hung", "", disturbance.done
    (result,) = results
    if isinstance(result, Exception):
        message = f"{type(result).__name__}: {result}".splitlines()[0]
        return "told" if isinstance(result, DaskdlError) else "wrong", message, disturbance.done
    return ("same" if result == expected else "wrong"), "", disturbance.done


def cluster(workers: int) -> Any:
    """Return a cluster of processes in which killed workers restart."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False}, silence_logs=logging.CRITICAL,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run trials until the time is over, and print the table."""
    from distributed import Client

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=1 << 30, help="largest number")
    options = parser.parse_args(arguments)
    rng, end = np.random.default_rng(options.seed), time.monotonic() + 60 * options.minutes
    table: dict[str, Counter[str]] = {fault: Counter() for fault in (*FAULTS, "all")}
    number = 0
    settings = {
        "distributed.deploy.lost-worker-timeout": "1 day", "daskdl.group-time": "100 ms",
        "distributed.scheduler.allowed-failures": 100,
    }  # fmt: skip
    with dask.config.set(settings):
        while time.monotonic() < end and number < options.trials:
            trial, number = drawn(rng), number + 1
            with cluster(trial.workers) as there, Client(there, set_as_default=False) as client:
                result, message, done = outcome(trial, client)
            for fault in (*(f for f in trial.faults if done[f]), "all"):
                table[fault][result] += 1
                table[fault]["faults"] += done.total() if fault == "all" else done[fault]
            if result != "same":
                print(json.dumps(asdict(trial)), result, message, dict(done), flush=True)
    print(f"seed {options.seed}, {number} trials")
    print(f"{'fault':10} {'done':>6}", *(f"{name:>6}" for name in OUTCOMES))
    for fault, counts in table.items():
        print(f"{fault:10} {counts['faults']:6}", *(f"{counts[name]:6}" for name in OUTCOMES))
    return int(table["all"]["wrong"] + table["all"]["hung"] > 0)


if __name__ == "__main__":
    sys.exit(main())
