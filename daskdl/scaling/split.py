"""Split: the parts of an iteration's time, which add up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daskdl.train import History

#: What a worker does in an iteration, on average over the workers. Idle is waiting for the slowest
#: worker's gradient. Scheduling is all that has no clock of its own: what the driver, the scheduler
#: and Dask's messages take between groups of iterations, and the engine between its steps. With the
#: graph engine it holds reduction and broadcast too, which are messages of Dask's.
PARTS = ("data", "forward", "backward", "reduce", "update", "broadcast", "scheduling", "idle")

#: Those that are one worker's own work.
WORK = ("data", "forward", "backward", "update")


def split(history: History, first: int, seconds: float) -> dict[str, float]:
    """Return the mean seconds of each of :data:`PARTS`.

    Parameters
    ----------
    history : History
    first : int
        The first iteration that counts.
    seconds : float
        That all iterations that count took together, with what is between groups of them.

    Returns
    -------
    dict of str to float
        Its sum is ``seconds / (len(history) - first)``.
    """
    count = len(history) - first
    clocks = {name: float(history[name][first:].sum()) for name in PARTS if name != "scheduling"}
    known = sum(clocks.values())
    # Phases of different workers may overlap a little; nothing is left between them then.
    scale = min(1.0, seconds / known) if known else 1.0
    clocks = {name: scale * value for name, value in clocks.items()}
    clocks["scheduling"] = seconds - sum(clocks.values())
    return {name: max(0.0, clocks[name]) / count for name in PARTS}
