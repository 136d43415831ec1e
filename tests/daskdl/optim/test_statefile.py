"""States written to and read from safetensors, also by the library itself."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import CheckpointError
from daskdl.optim import (
    EMA,
    LAMB,
    LBFGS,
    SGD,
    Accumulate,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    ClipNorm,
    Ftrl,
    Groups,
    Nadam,
    RMSprop,
    load_state,
    save_state,
)
from daskdl.optim.schedules import Plateau, Warmup
from tests.daskdl.optim import runs

METHODS = [
    SGD(momentum=0.9),
    Adam(amsgrad=True),
    Adagrad(),
    RMSprop(centered=True),
    Adadelta(),
    Adamax(),
    Nadam(),
    Ftrl(),
    LAMB().on(runs.LAYOUT),
    LBFGS(history=2),
    EMA(ClipNorm(Accumulate(Groups(AdamW(Warmup(Plateau(0.1), 2))).on(runs.LAYOUT), 2), 1.0)),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_a_run_goes_on_with_the_same_bits(method, tmp_path):
    w, state = runs.start(), method.init(runs.SIZE)
    for i in range(3):
        w, state = method.update(w, runs.gradients(w, i), state, i)
    save_state(tmp_path / "state.safetensors", state)
    back = load_state(tmp_path / "state.safetensors", method.init(runs.SIZE))
    assert [p.name for p in tmp_path.iterdir()] == ["state.safetensors"]
    assert {n: (a.dtype, a.shape) for n, a in back.items()} == {
        n: (a.dtype, a.shape) for n, a in state.items()
    }
    g = runs.gradients(w, 3)
    one, other = (method.update(w, g, s, 3) for s in (state, back))
    np.testing.assert_array_equal(one[0], other[0])
    for name, array in one[1].items():
        np.testing.assert_array_equal(array, other[1][name])


def test_others_read_it_by_plain_names(tmp_path):
    from safetensors.numpy import load_file

    save_state(tmp_path / "s", Adam().init(3))
    assert sorted(load_file(tmp_path / "s")) == ["mean", "square"]


def test_the_state_of_another_method_is_refused(tmp_path):
    save_state(tmp_path / "s", Adam().init(3))
    with pytest.raises(
        CheckpointError, match=r"expected square of shape \(3,\)|expected mean of none"
    ):
        load_state(tmp_path / "s", SGD(momentum=0.9).init(3))
    with pytest.raises(CheckpointError, match=r"expected mean of shape \(4,\), found shape \(3,\)"):
        load_state(tmp_path / "s", Adam().init(4))
    wide = {name: a.astype(np.float64) for name, a in Adam().init(3).items()}
    with pytest.raises(CheckpointError, match="expected mean of dtype float64, found dtype float3"):
        load_state(tmp_path / "s", wide)


def test_a_file_that_is_missing_or_cut_short_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="state: expected a whole safetensors file"):
        load_state(tmp_path / "state", {})
    save_state(tmp_path / "s", Adam().init(300))
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="s: expected a whole safetensors file"):
        load_state(tmp_path / "s", Adam().init(300))


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="state cannot be written"):
        save_state(tmp_path / "nowhere" / "s", Adam().init(3))
