"""Cores: on which of them a thread that is woken may run, so that it is not its waker's.

Linux puts a thread that it wakes where it ran before if that core is idle. In a virtual machine an
idle core looks as if the host had taken it away, and the thread is put on its waker's instead,
where the two take turns, for milliseconds, while the other core does nothing.
"""

from __future__ import annotations

import sys

import numpy as np
from numba import types

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.signals import AWAY, THREAD, atomic_load, atomic_store

#: Words of a set of cores, a bit each: 1024, as in glibc's.
WORDS = 16

if sys.platform == "linux":
    # By their names, which stand in code that numba keeps on disk; pointers are int64 here.
    _core = types.ExternalFunction("sched_getcpu", types.int32())
    _get = types.ExternalFunction(
        "sched_getaffinity", types.int32(types.int32, types.int64, types.int64)
    )
    _put = types.ExternalFunction(
        "sched_setaffinity", types.int32(types.int32, types.int64, types.int64)
    )

    @jit
    def _move_off(core, thread, cores):
        """Tell the system so, and return whether it was told; ``cores`` is an empty set.

        An argument, since numba lets go of a variable as soon as its address has been taken.
        """
        if _get(np.int32(0), 8 * WORDS, cores.ctypes.data) < 0:
            return False  # more cores than there are bits
        cores[core // 64] &= ~(np.uint64(1) << np.uint64(core % 64))
        if not cores.any():
            return False
        _put(thread, 8 * WORDS, cores.ctypes.data)
        return True

    @jit
    def keep_off(slot):
        """Let the thread of a slot run where this one may, but for the core that this one is on.

        It stays so until it is woken from another core. Without another core nothing is changed.
        """
        core = _core()
        if core < 0 or core >= 64 * WORDS or core + 1 == atomic_load(slot, AWAY):
            return
        if _move_off(core, np.int32(atomic_load(slot, THREAD)), np.zeros(WORDS, np.uint64)):
            atomic_store(slot, AWAY, core + 1)

else:

    @jit
    def keep_off(slot):
        """Leave it to the system."""
