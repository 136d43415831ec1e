"""Signals between threads that run no Python: atomic cells, short spins and then sleep.

With Python's futures, handing work to a sleeping thread and waiting for its end take a tenth of a
millisecond, longer than many kernels. A thread that spins notices work within a microsecond; a
thread that gets no work for a while goes to sleep and costs nothing.

A slot is 512 bytes of memory that two threads share: one posts jobs, the other does them. Its cells
are int64; each group of cells has its own cache line.

Linux wakes a thread on the core where it ran before, if that core is idle. In a virtual machine, an
idle core looks as if the host had taken it away. Linux then puts the thread on its waker's core;
the two take turns there for milliseconds, and the other core stays idle. So a thread is kept off
the core of the thread that wakes it.
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
#: ``DONE`` are the numbers of the latest job that was posted, begun by either thread, and done. The
#: job's six cells begin at ``JOB``; ``STATUS`` is not 0 if it failed. ``PATIENCE`` is how often
#: either thread looks at a cell before it sleeps. ``THREAD`` is the system's number of the thread
#: that does jobs, and ``AWAY`` is 1 + the core that this thread is kept off, or 0.
POSTED, DONE, JOB, STATUS, IDLE, WAITING, PATIENCE, THREAD, AWAY = 0, 8, 16, 22, 24, 25, 26, 27, 28
MUTEX, AWAKE, ENDED, BEGUN, CELLS = 32, 40, 48, 56, 64

#: Looks at a cell before a thread sleeps, two or three milliseconds: longer than the time between
#: two layers. OpenMP's threads spin three times as long. A sleeping core may take half a
#: millisecond to wake, above all in a virtual machine.
LOOKS = 100_000

#: Looks if there are more threads than cores: threads that spin keep others from their work.
FEW_LOOKS = 1_000

_PAUSES = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}

# Called by name, which stays valid in code that numba keeps on disk; pointers are int64 here.
_lock = types.ExternalFunction("pthread_mutex_lock", types.int32(types.int64))
_unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.int64))
_sleep = types.ExternalFunction("pthread_cond_wait", types.int32(types.int64, types.int64))
_wake = types.ExternalFunction("pthread_cond_signal", types.int32(types.int64))

#: Words of 64 bits in a set of cores, one bit a core: 1024 cores, as in glibc.
WORDS = 16


def _cell(builder: Any, slot: Any, cell: Any) -> Any:
    return builder.gep(builder.inttoptr(slot, I64.as_pointer()), [cell])


@intrinsic
def atomic_load(context, slot, cell):
    """Return the value of a cell; ``slot`` is an address."""

    def generate(context, builder, signature, args):
        return builder.load_atomic(_cell(builder, *args), "seq_cst", 8)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def atomic_store(context, slot, cell, value):
    """Set a cell; a thread that sees the value also sees everything written before it."""

    def generate(context, builder, signature, args):
        builder.store_atomic(args[2], _cell(builder, *args[:2]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def change(context, slot, cell, old, new):
    """Set a cell to the new value if it has the old one; return whether it had."""

    def generate(context, builder, signature, args):
        place = _cell(builder, *args[:2])
        outcome = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(outcome, 1)

    return types.boolean(*[types.int64] * 4), generate


@intrinsic
def _pause(context):
    """Hint to the processor that this loop waits."""

    def generate(context, builder, signature, args):
        name, values = _PAUSES.get(platform.machine(), ("", ()))
        if name:
            called(builder, name, ir.VoidType(), *[ir.Constant(I32, value) for value in values])
        return context.get_dummy_value()

    return types.void(), generate


@jit
def wait_until(slot, cell, value, asleep, condition):
    """Wait until the cell is at least ``value``; cell ``asleep`` is 1 while this thread sleeps."""
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
    """Set a cell and wake the thread that waits for it.

    This sets the cell and then reads ``asleep``; :func:`wait_until` sets ``asleep`` and then reads
    the cell. So at least one of the two sees the other's change.
    """
    atomic_store(slot, cell, value)
    if atomic_load(slot, asleep):
        _lock(slot + 8 * MUTEX)
        _wake(slot + 8 * condition)
        _unlock(slot + 8 * MUTEX)


if sys.platform == "linux":
    # By name, as above.
    _core = types.ExternalFunction("sched_getcpu", types.int32())
    _get = types.ExternalFunction(
        "sched_getaffinity", types.int32(types.int32, types.int64, types.int64)
    )
    _put = types.ExternalFunction(
        "sched_setaffinity", types.int32(types.int32, types.int64, types.int64)
    )

    @jit
    def _move_off(core, thread, cores):
        """Keep ``thread`` off ``core``; return whether the system was asked to.

        ``cores`` is an empty set. It is an argument, since numba frees a variable as soon as its
        address has been taken.
        """
        if _get(np.int32(0), 8 * WORDS, cores.ctypes.data) < 0:
            return False  # more cores than bits
        cores[core // 64] &= ~(np.uint64(1) << np.uint64(core % 64))
        if not cores.any():
            return False
        _put(thread, 8 * WORDS, cores.ctypes.data)
        return True

    @jit
    def keep_off(slot):
        """Let a slot's thread run on all cores of this thread, except the one it is running on.

        This holds until a thread on another core wakes it. With only one core, nothing changes.
        """
        core = _core()
        if core < 0 or core >= 64 * WORDS or core + 1 == atomic_load(slot, AWAY):
            return
        if _move_off(core, np.int32(atomic_load(slot, THREAD)), np.zeros(WORDS, np.uint64)):
            atomic_store(slot, AWAY, core + 1)

else:

    @jit
    def keep_off(slot):
        """Leave the choice of a core to the system."""
