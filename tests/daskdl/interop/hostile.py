"""Damage for files of all formats."""

from __future__ import annotations

import numpy as np

from daskdl.errors import DaskdlError


def mutants(data, count, seed=0):
    """Yield damaged copies: cut short, bits flipped, bytes repeated, left out or made large."""
    rng = np.random.default_rng(seed)
    whole = np.frombuffer(data, np.uint8)
    for i in range(count):
        damaged, at = whole.copy(), int(rng.integers(0, len(whole)))
        # Most of a file is numbers: half of the damage is done where names and sizes are.
        at = at if i % 2 else int(rng.integers(0, min(len(whole), 600)))
        kind = i % 5
        if kind == 0:
            damaged = damaged[:at]
        elif kind == 1:
            places = rng.integers(0, len(whole), 3)
            damaged[places] ^= np.uint8(1) << rng.integers(0, 8, 3).astype(np.uint8)
        elif kind == 2:
            damaged[at : at + 4] = 255
        elif kind == 3:
            damaged = np.concatenate([damaged[:at], damaged[max(0, at - 50) :]])
        else:
            damaged[at] ^= np.uint8(1 << rng.integers(0, 8))
        yield damaged.tobytes()


def survived(read, data, count):
    """Return the different sentences that mutants end with; any other exception goes through."""
    sentences = set()
    for mutant in mutants(data, count):
        try:
            read(mutant)
        except DaskdlError as error:
            sentence = str(error)
            assert "\n" not in sentence
            assert len(sentence) < 2000
            sentences.add(sentence[:50])
    return sentences
