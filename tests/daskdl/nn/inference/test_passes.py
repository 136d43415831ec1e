"""Passes of arbitrary models: pending results are computed, correctly, when they are read."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.kernels.convolution import bottleneck
from daskdl.kernels.convolution.inference import Convolution
from daskdl.kernels.products.affine import Affine
from daskdl.nn import BatchNorm, Conv2d, Linear, Module, Parameter
from daskdl.nn.inference import Inference
from daskdl.tensor import Tensor, no_grad, recording
from tests.daskdl.nn.inference.networks import images


class Model(Module):
    """A convolution, a norm and an affine map that a function uses."""

    def __init__(self, function):
        self._function = function
        self.conv, self.norm = Conv2d(3, 16, 3, padding=1, seed=0), BatchNorm(16)
        self.other, self.linear = Conv2d(3, 16, 1, seed=1), Linear(16, 16, seed=2)
        self.each, self.back = (
            Conv2d(16, 16, 3, padding=1, groups=16, seed=3),
            Conv2d(16, 3, 1, seed=4),
        )
        self.norm.running_mean.data[:] = np.linspace(-1, 1, 16)
        self.norm.running_variance.data[:] = np.linspace(0.5, 2, 16)
        self.factor = Parameter(np.full(16, 3.0))

    def forward(self, x):
        return self._function(self, x)


def _used_twice(m, x):
    y = m.conv(x)
    return ops.relu(y) + y


def _activated_and_used(m, x):
    y = m.conv(x)
    return m.linear(ops.relu(y)) + y


def _normed_then_both(m, x):
    y = m.norm(m.conv(x))
    return ops.relu(y) + y


def _added_then_both(m, x):
    y = m.conv(x) + m.other(x)
    return ops.relu(y) + y


def _plus_itself(m, x):
    y = m.conv(x)
    return y + y


def _normed_and_used(m, x):
    y = m.conv(x)
    return ops.relu(m.norm(y)) + ops.relu6(y + m.other(x)) + y


def _turned_and_used(m, x):
    y = ops.transpose(m.conv(x), axes=(0, 3, 1, 2))
    return ops.relu(y) + ops.clip(y, low=-1.0, high=2.0) + y


def _biased_and_used(m, x):
    y = ops.matmul(m.conv(x), ops.transpose(m.linear.weight, axes=(1, 0)))
    return ops.relu(y + m.factor) + y


def _read_first(m, x):
    y = m.conv(x)
    assert y.data.shape == y.shape
    return ops.relu(m.norm(y))


def _sum_of_two(m, x):
    return ops.relu(m.norm(m.conv(x)) + m.other(x))


def _limits(m, x):
    return ops.clip(ops.relu6(m.conv(x)), low=1.0, high=9.0)


def _no_overlap(m, x):
    return ops.clip(ops.relu(m.conv(x)), low=-3.0, high=-1.0)


def _norm_first(m, x):
    return ops.relu(m.norm(m.other(x) * 2.0))


def _norm_after_relu(m, x):
    return m.norm(ops.relu(m.conv(x)))


def _norm_with_limits(m, x):
    return ops.relu6(m.norm(ops.tanh(m.conv(x))))


def _bias_twice(m, x):
    return ops.matmul(m.other(x), ops.transpose(m.linear.weight, axes=(1, 0))) + m.factor + 1.0


def _made_weights(m, x):
    return ops.conv2d(x, m.other.weight * 2.0, m.other.bias)


def _depends_on_numbers(m, x):
    return ops.relu(m.conv(x)) if float(np.sum(x)) > 0 else m.other(x)


def _own_arithmetic(m, x):
    y = m.conv(x)
    return Tensor(np.sort(y.data, axis=1)) + ops.relu(m.other(x))


def _turned(m, x):
    return ops.relu(ops.transpose(m.conv(x), axes=(0, 3, 1, 2)))


def _transposed_sum(m, x):
    first, second = (ops.transpose(layer(x), axes=(0, 3, 1, 2)) for layer in (m.conv, m.other))
    return ops.relu(first + second)


def _joined(m, x):
    return ops.concatenate(ops.relu(m.conv(x)), m.other(x), x)


def _as_array(m, x):
    return Tensor(np.asarray(m.linear(ops.mean(m.conv(x), axis=(1, 2)))))


def _three_convolutions(m, x):
    return x + m.back(ops.relu6(m.each(ops.relu6(m.other(x)))))


def _two_convolutions(m, x):
    return ops.relu(m.back(m.norm(m.each(ops.concatenate(*[x] * 6)[..., :16]))))


def _sum_before_two(m, x):
    return m.back(ops.relu6(m.each(m.conv(x) + m.other(x))))


def _three_and_the_expanded(m, x):
    wide = ops.relu6(m.other(x))
    y = m.back(ops.relu(m.each(wide)))
    return ops.concatenate(wide, y)


FUNCTIONS = [f for name, f in list(globals().items()) if name[0] == "_" and name[1] != "_"]


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_forward_has_the_models_numbers(function):
    model = Model(function).eval()
    inference = Inference(model)
    for x in (images(2, 8), -images(2, 8)):
        with no_grad():
            expected = np.array(model(x).data)
        for _ in range(2):
            (result,) = inference.run(model, x)
            np.testing.assert_allclose(result, expected, rtol=0, atol=1e-5)
    assert not inference._programs  # a user's own code runs in each pass
    assert recording()


def test_an_error_comes_when_the_operation_is_called():
    model = Model(lambda m, x: ops.conv2d(x, m.conv.weight, None)).eval()
    with pytest.raises(ShapeError, match="conv2d: expected an image of at least"):
        Inference(model).run(model, images(1, 2))


def test_weights_are_prepared_once_for_all():
    model = Model(_sum_of_two).eval()
    inference = Inference(model)
    for n in (1, 2, 3):
        inference.run(model, images(n, 8))
    assert len(inference.prepared._made) == 2


def test_a_result_that_is_shown_in_two_orders_is_computed_once(monkeypatch):
    def forward(m, x):
        y = ops.relu(ops.transpose(m.conv(x), axes=(0, 3, 1, 2)))
        back = (ops.transpose(y, axes=(0, 2, 3, 1)) for _ in range(2))
        return ops.concatenate(*(m.linear(z) for z in back), axis=0)

    calls = _calls(monkeypatch)
    model = Model(forward).eval()
    Inference(model).run(model, images(1, 8))
    assert sum(isinstance(call, Convolution) for call in calls) == 1


@pytest.mark.parametrize(
    "function",
    [
        _used_twice, _activated_and_used, _plus_itself, _normed_and_used, _turned_and_used,
        _biased_and_used,
    ],
)  # fmt: skip
def test_a_result_that_is_read_and_extended_is_computed_once(function, monkeypatch):
    calls = _calls(monkeypatch)
    model = Model(function).eval()
    Inference(model).run(model, images(1, 8))
    assert len(calls) == len({id(call) for call in calls})
    assert len(calls) == {_normed_and_used: 2, _activated_and_used: 2, _biased_and_used: 2}.get(
        function, 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "function", [_three_convolutions, _two_convolutions, _three_and_the_expanded, _sum_before_two]
)
def test_expansion_depthwise_and_projection_are_one_kernel(function, monkeypatch):
    monkeypatch.setattr(bottleneck, "STAYS", 0)
    calls = _calls(monkeypatch)
    model = Model(function).eval()
    x = 20 * images(2, 8)  # beyond the limits of relu6
    (result,) = Inference(model).run(model, x)
    assert sum(isinstance(call, bottleneck.Bottleneck) for call in calls) == 1
    apart = {_three_and_the_expanded: 1, _sum_before_two: 2}.get(function, 0)
    assert sum(isinstance(call, Convolution) for call in calls) == apart
    monkeypatch.setattr(bottleneck, "STAYS", 1 << 30)
    np.testing.assert_array_equal(Inference(model).run(model, x)[0], result)


def _calls(monkeypatch):
    """Return a list to which each convolution and affine map that is computed is added."""
    calls = []
    for kind in (Convolution, Affine, bottleneck.Bottleneck):

        def counted(self, *arguments, whole=kind.__call__):
            calls.append(self)
            return whole(self, *arguments)

        monkeypatch.setattr(kind, "__call__", counted)
    return calls
