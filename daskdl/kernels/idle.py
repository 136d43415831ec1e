"""Idle threads of BLAS: numpy's OpenBLAS has them wait 25 ms for another product; here they sleep.

While they wait they take turns, on the same cores, with threads that do other parts of kernels.
With two threads on two cores a residual block's step took twice as long for it, and the step of a
small 1x1 convolution four times.
"""

from __future__ import annotations

import os
import threading

import threadpoolctl

#: Read by OpenBLAS when it is loaded, and when it starts its threads again.
VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
#: Ticks of the processor's clock to wait for, as a power of two: 20 is about 0.4 ms.
TICKS = "20"


def let_sleep() -> bool:
    """Have idle threads of OpenBLAS sleep soon, here and in processes that are started from here.

    Whoever has set the variable is left to it. Where Python has other threads, which might be in a
    product just now, this process stays as it is.

    Returns
    -------
    bool
        Whether OpenBLAS' threads were started again.
    """
    if VARIABLE in os.environ:
        return False
    os.environ[VARIABLE] = TICKS
    if threading.active_count() > 1:
        return False
    again = False
    found = threadpoolctl.ThreadpoolController().select(internal_api="openblas")
    for library in found.lib_controllers:
        names = ("openblas_read_env", "blas_thread_shutdown_", "blas_thread_init")
        steps = [getattr(library.dynlib, name, None) for name in names]
        if None in steps:
            continue
        for step in steps:
            step()  # type: ignore[misc]
        again = True
    return again
