"""A method's state in a safetensors file, by its plain names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from daskdl.errors import CheckpointError
from daskdl.files import replacing
from daskdl.optim.method import State


def save_state(path: str | os.PathLike[str], state: State) -> None:
    """Write a state; the file is whole or not there.

    Raises
    ------
    CheckpointError
        When it cannot be written.

    Examples
    --------
    >>> from daskdl.optim import Adam
    >>> save_state("state.safetensors", Adam().init(3))
    >>> sorted(load_state("state.safetensors", like=Adam().init(3)))
    ['mean', 'square']
    """
    from safetensors.numpy import save

    target = Path(path)
    # Not ascontiguousarray, which makes (1,) of a scalar.
    content = save({name: np.asarray(a, order="C") for name, a in state.items()})
    try:
        target.parent.stat()  # a folder that is not there is a mistake: it is not made
        with replacing(target) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise CheckpointError(
            f"{target}: the optimizer's state cannot be written ({error})"
            "; see the folder's permissions and the space on its disk"
        ) from error


def load_state(path: str | os.PathLike[str], like: State) -> State:
    """Read a state.

    Parameters
    ----------
    path : path
    like : state
        What ``init`` returns for the method that goes on with it: names, shapes and dtypes have to
        be the same.

    Raises
    ------
    CheckpointError
        When there is no such file, it is not whole, or it is of another method or model.

    Examples
    --------
    >>> from daskdl.optim import SGD
    >>> method = SGD(momentum=0.9)
    >>> save_state("state.safetensors", method.init(2))
    >>> load_state("state.safetensors", like=method.init(2))
    {'velocity': array([0., 0.], dtype=float32)}
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        state: State = load(Path(path).read_bytes())
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            f"{path}: expected a whole safetensors file of an optimizer's state, found that it "
            f"cannot be read ({error})"
            "; take the checkpoint before"
        ) from error
    for name in sorted(like.keys() | state.keys()):
        for kind in ("shape", "dtype"):
            wanted, stored = (
                f"{kind} {getattr(arrays[name], kind)}" if name in arrays else "none"
                for arrays in (like, state)
            )
            if wanted != stored:
                raise CheckpointError(
                    f"{path}: expected {name} of {wanted}, found {stored}; it is the state of "
                    "another method or model, take the one that was saved with this"
                )
    return state
