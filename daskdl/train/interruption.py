"""Interruption: Ctrl-C ends a script, or a notebook's cell, with one line of how to go on."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Protocol

from daskdl.errors import TRACEBACK
from daskdl.train.step import State


class Run(Protocol):
    """A fit under way: its state has the iterations done, of all there are to do."""

    state: State
    total: int


@contextmanager
def interruptions_told(run: Run, folder: Any) -> Iterator[None]:
    """Say in the KeyboardInterrupt of Ctrl-C how far a run is; a script ends on it with one line.

    A process that nobody rescues ends as Ctrl-C ends it, by the signal.

    Parameters
    ----------
    run : Run
    folder : path or None
        Of checkpoints.
    """
    try:
        yield
    except KeyboardInterrupt:
        how = (
            f"the same call goes on from the checkpoint in {folder}"
            if folder is not None
            else "the model has its weights; with checkpoint='folder' a fit can go on"
        )
        main = threading.current_thread() is threading.main_thread()
        if main and sys.excepthook is sys.__excepthook__:  # a debugger's stays
            sys.excepthook = _in_a_line
        done = f"fit interrupted after iteration {run.state.iteration} of {run.total}"
        # No class of its own: by its class Python knows how the process is to end.
        told = KeyboardInterrupt(f"{done}; {how}")
        told._render_traceback_ = lambda *_: [str(told)]  # type: ignore[attr-defined]  # IPython
        raise told from None


def _in_a_line(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if hasattr(error, "_render_traceback_") and not os.environ.get(TRACEBACK):
        print(f"{error} ({TRACEBACK}=1 shows where it was)", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, traceback)
