"""Pending results: joined operations run once, and results that others read stay unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.models import VGG16, InceptionV1, ResNet
from daskdl.models.googlenet import NormedInception
from daskdl.nn import BatchNorm, Conv2d, ReLU, Sequential
from daskdl.nn.inference import Inference
from daskdl.nn.inference.pending import Joined, Pending
from daskdl.nn.inference.program import View
from daskdl.tensor import no_grad
from tests.daskdl.nn.inference.networks import NETWORKS, images, settled


def waiting(log: list[str]) -> Pending:
    """Return a pending array of ones; computing and extending it is logged."""

    def apply(x: np.ndarray, joined: Joined) -> np.ndarray:
        for more in (joined.bias, joined.residual):
            x = x if more is None else x + more
        return np.clip(x, joined.low, joined.high)

    def compute(joined: Joined) -> np.ndarray:
        log.append("computed")
        return apply(np.ones((2, 3), np.float32), joined)

    def extend(x: np.ndarray, joined: Joined) -> np.ndarray:
        log.append("extended")
        return apply(x, joined)

    return Pending(compute, extend, (2, 3), np.float32)


def values(tensor: Any) -> list[float]:
    return np.unique(tensor.data).tolist()


def test_operations_of_a_result_that_others_read_are_not_repeated() -> None:
    log: list[str] = []
    first = waiting(log)
    residual = np.full((2, 3), 10, np.float32)
    added = first.use().with_(first.joined._replace(residual=residual))
    limited = added.use().with_(added.joined._replace(high=5.0))
    added.use()  # another reader of the sum itself
    assert values(limited) == [5]
    assert values(added) == [11]
    assert log == ["computed", "extended"]

    added = (first := waiting(log)).use().with_(first.joined._replace(residual=residual))
    raised = added.use().with_(added.joined._replace(low=2.0))
    added.use()
    assert values(raised) == [11]  # not 21


def test_a_result_is_alone_until_a_second_reader_comes() -> None:
    first = waiting([])
    assert first.alone() is first
    first.use()
    assert first.alone() is first
    first.use()
    assert first.alone() is None


def test_a_result_that_replaces_one_with_other_readers_is_not_alone() -> None:
    first = waiting([])
    limited = first.use().with_(first.joined._replace(low=0.0))
    assert limited.alone() is limited
    first.use()
    assert limited.alone() is None


def test_a_computed_result_is_not_alone() -> None:
    first = waiting([])
    assert values(first) == [1]
    assert first.alone() is None


def test_numbers_that_all_readers_round_are_computed_in_bfloat16() -> None:
    joined: list[Joined] = []

    def compute(steps: Joined) -> np.ndarray:
        joined.append(steps)
        return np.ones((2, 3), np.uint16 if steps.half else np.float32)

    def pending() -> Pending:
        joined.clear()
        made = Pending(compute, lambda x, steps: x, (2, 3), np.float32)
        made.gives_half = True
        return made

    first = pending()
    for reader in (first.use_half(), first.use_half()):
        assert reader.half is not None
        assert reader.half.dtype == np.uint16
    assert [steps.half for steps in joined] == [True]
    assert first.use().data.dtype == np.float32  # a later reader that does not round
    assert [steps.half for steps in joined] == [True, False]

    first = pending()
    first.use()
    assert first.use_half().half is None
    assert not joined


N = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_results_are_the_models_with_the_same_bits_in_any_batch(name):
    make, samples, by_program = NETWORKS[name]
    model, x = make().eval(), samples(N)
    with no_grad():
        expected = model(x).data
    inference = Inference(model)
    (result,) = inference.run(model, x)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    program = inference._programs.get((x.shape, x.dtype, "float32"))
    assert (program is not None) == by_program
    for start, stop, threads in ((0, N, 2), (0, 1, 1), (3, 4, 2), (1, 4, 1)):
        with thread_budget(threads):
            for _ in range(3):  # recorded, by the program, and by its layout
                (part,) = inference.run(model, x[start:stop])
                np.testing.assert_array_equal(part, result[start:stop])


def test_a_program_computes_other_numbers_of_the_same_shape():
    make, samples, _ = NETWORKS["graph"]
    model = make().eval()
    x, inference = samples(2), Inference(model)
    for _ in range(2):
        inference.run(model, x)
    other = x[::-1] * 2
    with no_grad():
        expected = model(np.ascontiguousarray(other)).data
    (result,) = inference.run(model, other)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


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
    assert len(layout.works) == 19  # all but the first, which reads the input, the mean, the end


@pytest.mark.slow
@pytest.mark.parametrize(("make", "side"), [
    (lambda: settled(ResNet(50, 5, "imagenet", 16, zero_last=False)), 64),
    (lambda: VGG16(3, width=0.25, hidden=16), 224),
    (lambda: InceptionV1(7), 64),
    (lambda: settled(Sequential(
        NormedInception(3, 32, (32, 32), (32, 32), 32), BatchNorm(128), ReLU(), Conv2d(128, 32, 3),
    )), 16),
], ids=["bottleneck", "vgg", "inception", "joined"])  # fmt: skip
def test_storing_numbers_in_bfloat16_changes_no_bits(make, side, monkeypatch):
    model, x = make().eval(), images(2, side)
    with computing_in("bf16-tiles"):
        inference = Inference(model)
        results = [inference.run(model, x)[0] for _ in range(3)]
        program = inference._programs[x.shape, x.dtype, "bf16-tiles"]
        kept = [view for step in program.steps for view in step.arguments if type(view) is View]
        assert any(view.dtype == np.uint16 for view in kept)
        monkeypatch.setattr(Pending, "half", None)
        (expected,) = Inference(model).run(model, x)
    for result in results:
        np.testing.assert_array_equal(result, expected)
