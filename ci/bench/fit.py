"""Cost of Trainer.fit beside bare steps of the same network: ``python -m ci.bench.fit``.

Time: iterations of a fit in this process and of a plain loop (take a batch, forward, loss,
backward, update) take turns, on one thread, in seconds of the processor: the least of each, and
the median of what a fit takes more than the loop beside it. What a fit does once is left out, by
the difference to a fit of one iteration. Memory: the most that a process of its own has held, less
what it held before the network was made.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ci.bench.training import held_mb, peak_mb
from daskdl.data import SampleSet
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.models import LeNet5, ResNet
from daskdl.nn import CrossEntropyLoss, Module
from daskdl.optim import SGD, Layout
from daskdl.train import Trainer


@dataclass(frozen=True)
class Case:
    """A network, the shape of a sample, classes, samples of an iteration, and iterations."""

    make: Callable[[], Module]
    shape: tuple[int, ...]
    classes: int
    batch: int
    iterations: int


CASES = {
    "LeNet": Case(LeNet5, (28, 28, 1), 10, 32, 200),
    "ResNet-50": Case(lambda: ResNet(50, 1000), (224, 224, 3), 1000, 8, 3),
}


def samples(case: Case) -> tuple[Any, Any]:
    """Return inputs and labels for one epoch."""
    rng = np.random.default_rng(0)
    n = case.batch * case.iterations
    return rng.standard_normal((n, *case.shape), np.float32), rng.integers(0, case.classes, n)


def bare(case: Case, x: Any, y: Any) -> Callable[[], float]:
    """Return a plain loop over one epoch, which returns its seconds an iteration."""
    model, loss = case.make().train(), CrossEntropyLoss()
    method = SGD(0.01, momentum=0.9).on(Layout.of(model))
    state, iteration = method.init(model.flat.size), 0

    def epoch() -> float:
        nonlocal state, iteration
        order = np.random.default_rng(iteration).permutation(len(x))
        began = time.process_time()
        for i in range(case.iterations):
            chosen = order[i * case.batch : (i + 1) * case.batch]
            model.zero_grad()
            value = loss(model(x[chosen]), y[chosen])
            value.backward()
            _, state = method.update(model.flat, model.flat_grad, state, iteration, overwrite=True)
            iteration += 1
        return (time.process_time() - began) / case.iterations

    return epoch


def fitted(case: Case, x: Any, y: Any) -> Callable[[], float]:
    """Return a fit of one epoch, which returns its seconds an iteration."""
    trainer = Trainer(case.make(), CrossEntropyLoss(), SGD(0.01, momentum=0.9))
    held = SampleSet.from_arrays(x=x, y=y)

    def seconds(iterations: int) -> float:
        began = time.process_time()
        trainer.fit(
            held,
            iterations=iterations,
            batch_size=case.batch,
            threads=1,
            client=False,
            progress=False,
        )
        return time.process_time() - began

    def epoch() -> float:
        return (seconds(case.iterations) - seconds(1)) / (case.iterations - 1)

    return epoch


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--alone", choices=["bare", "fit"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, case in CASES.items():
        if options.only not in (None, name):
            continue
        x, y = samples(case)
        with thread_budget(1):
            if options.alone:
                before = held_mb()
                (bare if options.alone == "bare" else fitted)(case, x, y)()
                print(peak_mb() - before)
                continue
            plain, fit = bare(case, x, y), fitted(case, x, y)
            times = [(plain(), fit()) for _ in range(options.rounds)]
        a, b = (1000 * min(t) for t in zip(*times, strict=True))
        more = median(fit / plain for plain, fit in times) - 1
        mb = [_alone(name, who) for who in ("bare", "fit")]
        print(
            f"{name:<10} b{case.batch:<3} bare {a:8.3f} ms, fit {b:8.3f} ms an iteration "
            f"({100 * more:+.1f} %); bare {mb[0]:.0f} MB, fit {mb[1]:.0f} MB "
            f"({100 * (mb[1] / mb[0] - 1):+.0f} %)",
            flush=True,
        )


def _alone(name: str, who: str) -> float:
    command = [sys.executable, "-m", "ci.bench.fit", "--only", name, "--alone", who]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    main()
