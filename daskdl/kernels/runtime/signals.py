"""Signals between threads that run no Python: atomic cells, short spins and then sleep.

To hand work to a sleeping thread and to hear of its end takes Python's futures a tenth of a
millisecond, longer than many a kernel. A thread that looks again and again for a while notices
within a microsecond; one that nobody needs for that long goes to sleep and costs nothing.

A slot is 512 bytes of memory that two threads share, one that posts jobs and one that does them.
Its cells are int64, each group of them on a cache line of its own.

Linux puts a thread that it wakes where it ran before if that core is idle. In a virtual machine an
idle core looks as if the host had taken it away, and the thread is put on its waker's instead,
where the two take turns, for milliseconds, while the other core does nothing. So a thread is kept
off the core of the one that wakes it.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskdl.kernels.runtime.jit import jit
from daskdl.kernels.runtime.llvm import I32, I64, called

#: Cells of a slot, and where its mutex and its two conditions begin. ``POSTED``, ``BEGUN`` and
#: ``DONE`` are the numbers of the latest job that was posted, that either thread has begun, and
#: that is done; from ``JOB`` on lies what the job is; ``STATUS`` is not 0 if it failed;
#: ``PATIENCE`` is how often either thread looks before it sleeps; ``THREAD`` the system's number of
#: the one that does jobs, and ``AWAY`` 1 + the core that it is kept off, or 0.
POSTED, DONE, JOB, STATUS, IDLE, WAITING, PATIENCE, THREAD, AWAY = 0, 8, 16, 22, 24, 25, 26, 27, 28
MUTEX, AWAKE, ENDED, BEGUN, CELLS = 32, 40, 48, 56, 64

#: Looks at a cell before a thread goes to sleep, two or three milliseconds: more than there is
#: between two layers. OpenMP's threads look three times as long. A core that sleeps may take half a
#: millisecond to be back, above all if it is a virtual machine's.
LOOKS = 100_000

#: Looks where there are more threads than cores: they keep the threads with work from theirs.
FEW_LOOKS = 1_000

_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}

# By their names, which stand in code that numba keeps on disk; pointers are int64 here.
_lock = types.ExternalFunction("pthread_mutex_lock", types.int32(types.int64))
_unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.int64))
_sleep = types.ExternalFunction("pthread_cond_wait", types.int32(types.int64, types.int64))
_wake = types.ExternalFunction("pthread_cond_signal", types.int32(types.int64))

#: Words of a set of cores, a bit each: 1024, as in glibc's.
WORDS = 16


def _cell(builder: Any, slot: Any, cell: Any) -> Any:
    return builder.gep(builder.inttoptr(slot, I64.as_pointer()), [cell])


@intrinsic
def atomic_load(context, slot, cell):
    """Return the value of a cell of the slot at this address."""

    def generate(context, builder, signature, args):
        return builder.load_atomic(_cell(builder, *args), "seq_cst", 8)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def atomic_store(context, slot, cell, value):
    """Set a cell; whatever was written before is seen by whoever sees the value."""

    def generate(context, builder, signature, args):
        builder.store_atomic(args[2], _cell(builder, *args[:2]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def change(context, slot, cell, old, new):
    """Set a cell that has the old value to the new one, and return whether it had."""

    def generate(context, builder, signature, args):
        place = _cell(builder, *args[:2])
        outcome = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(outcome, 1)

    return types.boolean(*[types.int64] * 4), generate


@intrinsic
def _pause(context):
    """Tell the processor that this is a loop that waits."""

    def generate(context, builder, signature, args):
        name, values = _PAUSES.get(platform.machine(), ("", ()))
        if name:
            called(builder, name, ir.VoidType(), *[ir.Constant(I32, value) for value in values])
        return context.get_dummy_value()

    return types.void(), generate


@jit
def wait_until(slot, cell, value, asleep, condition):
    """Return once the cell has at least this value; ``asleep`` is the cell that says who sleeps."""
    for _ in range(atomic_load(slot, PATIENCE)):
        if atomic_load(slot, cell) >= value:
            return
        _pause()
    mutex = slot + 8 * MUTEX
    _lock(mutex)
    atomic_store(slot, asleep, 1)  # before the cell is looked at again, see tell
    while atomic_load(slot, cell) < value:
        _sleep(slot + 8 * condition, mutex)
    atomic_store(slot, asleep, 0)
    _unlock(mutex)


@jit
def tell(slot, cell, value, asleep, condition):
    """Set a cell and wake who waits for it.

    Here the cell is set and then ``asleep`` looked at, there the other way round: one of the two
    sees what the other has set.
    """
    atomic_store(slot, cell, value)
    if atomic_load(slot, asleep):
        _lock(slot + 8 * MUTEX)
        _wake(slot + 8 * condition)
        _unlock(slot + 8 * MUTEX)


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
