"""A worker is cut off without a reset in the middle of a fit: how long until the fit goes on.

Usage: python -m ci.bench.engine_cut [--engine graph] [--workers 2]

Workers are in network namespaces of their own. After some groups of iterations one of them and its
neighbours are given wrong link addresses of each other, so that packets vanish both ways. JSON is
printed: seconds from the cut to the sentence that tells of it, and to the next group of iterations,
and whether the weights are those of a fit in this process. It has to be run as root.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
from typing import Any

import numpy as np

from ci.bench.engine_links import BRIDGE, HERE, address, hosts, inside, missing, name
from daskdl.data import SampleSet
from daskdl.nn import CrossEntropyLoss, Linear, ReLU, Sequential
from daskdl.optim import Adam
from daskdl.train import Trainer
from daskdl.train.watch.callbacks import Callback

#: A link address that nobody has.
NOBODY = "02:00:00:00:00:99"


class Cut(Callback, logging.Handler):
    """Cuts the last host off after some groups, and notes when what is told and goes on."""

    def __init__(self, workers: int, after: int) -> None:
        logging.Handler.__init__(self)
        self.workers, self.after, self.groups = workers, after, 0
        self.at = 0.0
        self.told: list[tuple[float, str]] = []
        self.went_on = 0.0

    def on_group_end(self, trainer: Trainer, iteration: int) -> None:
        """Count, and cut or note."""
        self.groups += 1
        if self.groups == self.after:
            self.at = time.monotonic()
            self._cut()
        elif self.at and not self.went_on:
            self.went_on = time.monotonic() - self.at

    def _cut(self) -> None:
        last = self.workers - 1
        vanish = ["lladdr", NOBODY, "nud", "permanent", "dev"]
        subprocess.run(["ip", "neigh", "replace", address(last), *vanish, BRIDGE], check=True)
        for host in range(self.workers):
            others = [HERE, *map(address, range(last))] if host == last else [address(last)]
            for other in others:
                there = ["ip", "-n", name(host), "neigh", "replace", other, *vanish, "eth0"]
                subprocess.run(there, check=True)

    def emit(self, record: logging.LogRecord) -> None:
        """Note a warning."""
        if self.at:
            self.told.append((time.monotonic() - self.at, record.getMessage()))


def fitted(**options: Any) -> bytes:
    """Fit a small network and return its weights."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 64), np.float32)
    samples = SampleSet.from_arrays(x=x, y=(x[:, 0] > 0).astype(np.int64), partitions=4)
    model = Sequential(Linear(64, 64, seed=1), ReLU(), Linear(64, 2, seed=2))
    trainer = Trainer(model, CrossEntropyLoss(), Adam(1e-3), seed=3)
    trainer.fit(samples, epochs=40, batch_size=64, progress=False, **options)
    return trainer.model.flat.tobytes()


def main(arguments: list[str] | None = None) -> int:
    """Run a fit whose last worker is cut off, and print what came of it."""
    import dask
    from distributed import Client

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="graph", choices=["graph", "gang"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--after", type=int, default=3, help="groups of iterations")
    args = parser.parse_args(arguments)
    if why := missing():
        print(why, file=sys.stderr)
        return 2
    whole, processes = fitted(client=False), list[subprocess.Popen[bytes]]()
    cut = Cut(args.workers, args.after)
    logging.getLogger("daskdl").addHandler(cut)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def start(*command: str) -> None:
        processes.append(subprocess.Popen(command, **quiet))  # type: ignore[call-overload]

    with hosts(args.workers), dask.config.set({"daskdl.group-time": "500 ms"}):
        try:
            python, place = [sys.executable, "-m"], f"tcp://{HERE}:18786"
            start(
                *python, "distributed.cli.dask_scheduler", "--host", HERE, "--port", "18786",
                "--no-dashboard",
            )  # fmt: skip
            for host in range(args.workers):
                start(
                    *inside(host), *python, "distributed.cli.dask_worker", place, "--host",
                    address(host), "--nthreads", "1", "--no-nanny", "--no-dashboard",
                )  # fmt: skip
            with Client(place, timeout=120, set_as_default=False) as client:
                client.wait_for_workers(args.workers, timeout=300)
                weights = fitted(client=client, engine=args.engine, callbacks=[cut])
        finally:
            for process in processes:
                process.kill()
                process.wait()
    result = {
        "engine": args.engine, "workers": args.workers, "groups": cut.groups,
        "went_on_after_s": round(cut.went_on, 1),
        "told": [(round(s, 1), text) for s, text in cut.told],
        "same_weights": weights == whole,
    }  # fmt: skip
    print(json.dumps(result, indent=2))
    return int(weights != whole)


if __name__ == "__main__":
    sys.exit(main())
