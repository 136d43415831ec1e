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


def of_conv(function):
    """Return a function of a model and images that has the convolution's result as well."""
    return lambda m, x: function(m, x, m.conv(x))


def both(y):
    """Return a sum that reads a result twice."""
    return ops.relu(y) + y


def turned(y):
    """Return a result with its channels second."""
    return ops.transpose(y, axes=(0, 3, 1, 2))


def mapped(m, y):
    """Return the product of the affine map without its bias."""
    return ops.matmul(y, ops.transpose(m.linear.weight, axes=(1, 0)))


FUNCTIONS = {
    "used twice": of_conv(lambda m, x, y: both(y)),
    "activated and used": of_conv(lambda m, x, y: m.linear(ops.relu(y)) + y),
    "normed then both": of_conv(lambda m, x, y: both(m.norm(y))),
    "added then both": of_conv(lambda m, x, y: both(y + m.other(x))),
    "plus itself": of_conv(lambda m, x, y: y + y),
    "normed and used": of_conv(lambda m, x, y: ops.relu(m.norm(y)) + ops.relu6(y + m.other(x)) + y),
    "turned and used": of_conv(
        lambda m, x, y: both(z := turned(y)) + ops.clip(z, low=-1.0, high=2.0)
    ),
    "biased and used": of_conv(lambda m, x, y: ops.relu((z := mapped(m, y)) + m.factor) + z),
    "read first": of_conv(lambda m, x, y: ops.relu(m.norm(y)) if y.data.shape == y.shape else None),
    "sum of two": lambda m, x: ops.relu(m.norm(m.conv(x)) + m.other(x)),
    "limits": lambda m, x: ops.clip(ops.relu6(m.conv(x)), low=1.0, high=9.0),
    "no overlap": lambda m, x: ops.clip(ops.relu(m.conv(x)), low=-3.0, high=-1.0),
    "norm first": lambda m, x: ops.relu(m.norm(m.other(x) * 2.0)),
    "norm after relu": lambda m, x: m.norm(ops.relu(m.conv(x))),
    "norm with limits": lambda m, x: ops.relu6(m.norm(ops.tanh(m.conv(x)))),
    "bias twice": lambda m, x: mapped(m, m.other(x)) + m.factor + 1.0,
    "made weights": lambda m, x: ops.conv2d(x, m.other.weight * 2.0, m.other.bias),
    "depends on numbers": lambda m, x: ops.relu(m.conv(x)) if float(np.sum(x)) > 0 else m.other(x),
    "own arithmetic": of_conv(
        lambda m, x, y: Tensor(np.sort(y.data, axis=1)) + ops.relu(m.other(x))
    ),
    "turned": lambda m, x: ops.relu(turned(m.conv(x))),
    "transposed sum": lambda m, x: ops.relu(turned(m.conv(x)) + turned(m.other(x))),
    "joined": lambda m, x: ops.concatenate(ops.relu(m.conv(x)), m.other(x), x),
    "as array": of_conv(lambda m, x, y: Tensor(np.asarray(m.linear(ops.mean(y, axis=(1, 2)))))),
}
#: An expansion, a depthwise convolution and a projection, or two of them; and how many
#: convolutions are computed apart.
BOTTLENECKS = {
    "three": (lambda m, x: x + m.back(ops.relu6(m.each(ops.relu6(m.other(x))))), 0),
    "two": (
        lambda m, x: ops.relu(m.back(m.norm(m.each(ops.concatenate(*[x] * 6)[..., :16])))), 0
    ),
    "sum before two": (lambda m, x: m.back(ops.relu6(m.each(m.conv(x) + m.other(x)))), 2),
    "three and the expanded": (
        lambda m, x: ops.concatenate(
            z := ops.relu6(m.other(x)), m.back(ops.relu(m.each(z)))
        ), 1,
    ),
}  # fmt: skip
FUNCTIONS |= {name: function for name, (function, _) in BOTTLENECKS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_forward_has_the_models_numbers(name):
    model = Model(FUNCTIONS[name]).eval()
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
    model = Model(FUNCTIONS["sum of two"]).eval()
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
    ("name", "count"),
    [
        ("used twice", 1), ("activated and used", 2), ("plus itself", 1), ("normed and used", 2),
        ("turned and used", 1), ("biased and used", 2),
    ],
)  # fmt: skip
def test_a_result_that_is_read_and_extended_is_computed_once(name, count, monkeypatch):
    calls = _calls(monkeypatch)
    model = Model(FUNCTIONS[name]).eval()
    Inference(model).run(model, images(1, 8))
    assert len(calls) == len({id(call) for call in calls}) == count


@pytest.mark.slow
@pytest.mark.parametrize(("function", "apart"), BOTTLENECKS.values(), ids=BOTTLENECKS)
def test_expansion_depthwise_and_projection_are_one_kernel(function, apart, monkeypatch):
    monkeypatch.setattr(bottleneck, "STAYS", 0)
    calls = _calls(monkeypatch)
    model = Model(function).eval()
    x = 20 * images(2, 8)  # beyond the limits of relu6
    (result,) = Inference(model).run(model, x)
    assert sum(isinstance(call, bottleneck.Bottleneck) for call in calls) == 1
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
