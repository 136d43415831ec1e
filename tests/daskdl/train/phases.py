"""Workers that die, once, in a phase of an iteration."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import Client

from daskdl.collective import exchange
from daskdl.data.on_workers import shards
from daskdl.train.engines import evaluation, gradient, step
from tests.daskdl.train.runs import die

#: For each engine and phase, what a worker calls then, and what kind of message if it is one.
CALLS: dict[tuple[str, str], tuple[object, str, str]] = {
    ("graph", "load"): (shards, "load_shard", ""),
    ("graph", "gradient"): (step, "gradient", ""),
    ("graph", "reduce"): (gradient, "add", ""),
    ("graph", "update"): (step, "next_state", ""),
    ("graph", "broadcast"): (step, "next_weights", ""),
    ("graph", "validation"): (evaluation, "evaluate", ""),
    ("gang", "load"): (shards, "load_shard", ""),
    ("gang", "gradient"): (step, "gradient", ""),
    ("gang", "reduce"): (exchange.Exchange, "swap", "reduce"),
    ("gang", "update"): (step, "update", ""),
    ("gang", "broadcast"): (exchange.Exchange, "swap", "weights"),
    ("gang", "validation"): (evaluation, "evaluate", ""),
}


class Dying:
    """Stands in for a function, and ends the process at its n-th call if no other has before."""

    def __init__(self, function: Callable[..., Any], kind: str, calls: int, marker: str) -> None:
        self.function, self.kind = function, kind
        self.calls, self.marker = calls, marker

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not self.kind or any(isinstance(a, str) and a.startswith(self.kind) for a in args):
            self.calls -= 1
        if self.calls == 0:
            try:
                os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                die()
        return self.function(*args, **options)


def arm(engine: str, phase: str, calls: int, marker: str) -> None:
    """Let this process die at its n-th call of what the phase does."""
    owner, name, kind = CALLS[engine, phase]
    dying = Dying(getattr(owner, name), kind, calls, marker)
    # A function, so that it becomes a method where it takes the place of one.
    setattr(owner, name, lambda *args, **options: dying(*args, **options))


def arm_workers(client: Client, engine: str, phase: str, marker: Path, calls: int = 5) -> None:
    """Let the first worker that makes its n-th call die."""
    client.run(arm, engine, phase, calls, str(marker))
