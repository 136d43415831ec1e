"""The torch package; daskdl controls the threads and random numbers of its calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskdl.errors import needed
from daskdl.kernels.runtime.threads import threads
from daskdl.masked import unmasked
from daskdl.tensor import wants_grad

with needed("daskdl.torch: expected PyTorch, found it not installed; pip install daskdl[torch]"):
    import torch

__all__ = ["as_array", "as_tensor", "budgeted", "drawing_from", "sources_of", "torch"]

#: Held while a module draws: all threads of a process share torch's generator.
_generator = threading.Lock()


def budgeted() -> None:
    """Limit torch's operations in this thread to the thread budget."""
    budget = threads()
    if torch.get_num_threads() != budget:
        torch.set_num_threads(budget)


@contextmanager
def drawing_from(seed: int, counter: int) -> Iterator[None]:
    """Seed torch's generator by seed and counter inside; restore its state afterwards."""
    state = np.random.SeedSequence([seed, counter]).generate_state(1, np.uint64)
    with _generator:
        before = torch.random.get_rng_state()
        torch.manual_seed(int(state[0]) & (2**63 - 1))
        try:
            yield
        finally:
            torch.random.set_rng_state(before)


def as_tensor(array: Any, copy: bool = False) -> Any:
    """Return an array as a tensor, by default of the same memory; return other values unchanged."""
    array = unmasked("TorchModule", array)
    if not isinstance(array, np.ndarray):
        return array
    usable = array.flags.writeable and array.dtype.isnative and min(array.strides, default=0) >= 0
    if copy or not usable:
        array = array.astype(array.dtype.newbyteorder("="), order="K")
    return torch.from_numpy(array)


def as_array(tensor: Any) -> np.ndarray[Any, Any]:
    """Return a tensor's numbers; without a copy if numpy has the dtype, otherwise as float32."""
    detached = tensor.detach()
    if detached.dtype in (torch.float16, torch.bfloat16):
        detached = detached.float()
    return detached.numpy()


def sources_of(inputs: Sequence[Any]) -> list[Any]:
    """Return the node or tensor that receives each input's gradient; None without a gradient."""
    return [
        ((x._node, x._slot) if x._node is not None else x) if wants_grad(x) else None
        for x in inputs
    ]
