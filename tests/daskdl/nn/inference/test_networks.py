"""Networks in inference: the model's own numbers, the same bits in any batch and by programs."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.threads import thread_budget
from daskdl.nn.inference import Inference
from daskdl.tensor import no_grad
from tests.daskdl.nn.inference.networks import NETWORKS

N = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_the_models_with_the_same_bits_in_any_batch(name):
    make, samples, by_program = NETWORKS[name]
    model, x = make().eval(), samples(N)
    with no_grad():
        expected = model(x).data
    inference = Inference(model)
    (found,) = inference.run(model, x)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    program = inference._programs.get((x.shape, x.dtype, "float32"))
    assert (program is not None) == by_program
    for start, stop, threads in ((0, N, 2), (0, 1, 1), (3, 4, 2), (1, 4, 1)):
        with thread_budget(threads):
            for _ in range(3):  # written down, by the program, and by what that laid out
                (part,) = inference.run(model, x[start:stop])
                np.testing.assert_array_equal(part, found[start:stop])


def test_a_program_computes_other_numbers_of_the_same_shape():
    make, samples, _ = NETWORKS["graph"]
    model = make().eval()
    x, inference = samples(2), Inference(model)
    for _ in range(2):
        inference.run(model, x)
    other = x[::-1] * 2
    with no_grad():
        expected = model(np.ascontiguousarray(other)).data
    (found,) = inference.run(model, other)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


@pytest.mark.slow
def test_folded_norms_are_fewer_steps():
    model = NETWORKS["residual"][0]().eval()
    x = NETWORKS["residual"][1](1)
    inference = Inference(model)
    inference.run(model, x)
    program = inference._programs[x.shape, x.dtype, "float32"]
    # 20 convolutions, a mean and an affine map: norms, sums and ReLUs are in them.
    assert program is not None
    assert len(program.steps) == 22
    inference.run(model, x)
    (layout,) = inference._local.layouts.values()
    assert len(layout.works) == 19  # all but the first, whose input is another, the mean, the end
