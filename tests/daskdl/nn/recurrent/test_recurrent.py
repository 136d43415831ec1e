"""Recurrent layers against PyTorch's: stacks, directions, lengths, states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn, ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import normal


def equal_layers(torch, kind, layers, both, **how):
    """Return our layer and PyTorch's with the same weights."""
    ours = getattr(nn, kind)(3, 4, layers, both, seed=0, **how)
    theirs = getattr(torch.nn, kind)(3, 4, layers, batch_first=True, bidirectional=both, **how)
    state = {name: array.numpy() for name, array in theirs.state_dict().items()}
    ours.load_state_dict(state, names="torch")
    return ours, theirs


@settings(max_examples=6)
@given(layers=st.integers(1, 3), both=st.booleans(), stateful=st.booleans())
@pytest.mark.parametrize(
    ("kind", "how"), [("RNN", {"nonlinearity": "relu"}), ("RNN", {}), ("LSTM", {}), ("GRU", {})]
)
def test_agrees_with_pytorch(kind, how, layers, both, stateful, torch):
    ours, theirs = equal_layers(torch, kind, layers, both, **how)
    x, count = normal(2, 5, 3).astype("f4"), layers * (1 + both)
    starts = [normal(count, 2, 4, seed=i).astype("f4") for i in range(1 + (kind == "LSTM"))]
    state = tuple(zip(*starts, strict=True)) if stateful else None
    start = tuple(torch.tensor(s) for s in starts) if kind == "LSTM" else torch.tensor(starts[0])
    y, last = theirs(torch.tensor(x), start if stateful else None)
    result, after = ours(x, state)
    np.testing.assert_allclose(result.data, y.detach(), atol=1e-5)
    last = last if kind == "LSTM" else (last,)
    for i, one in enumerate(after):
        for part, right in zip(one, last, strict=True):
            np.testing.assert_allclose(part.data, right[i].detach(), atol=1e-5)
    dy = normal(*result.shape).astype("f4")
    result.backward(dy)
    y.backward(torch.tensor(dy))
    for place in range(layers):
        for end in ("", "_reverse") if both else ("",):
            pair = ("weight_input", "weight_ih_l"), ("weight_state", "weight_hh_l")
            for mine, other in pair:
                np.testing.assert_allclose(
                    getattr(ours, f"{mine}_{place}{end}").grad,
                    getattr(theirs, f"{other}{place}{end}").grad,
                    atol=1e-4,
                )


@pytest.mark.slow
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_returns_and_lengths(kind, both):
    def layer(returns):
        return getattr(nn, kind)(3, 4, 2, both, returns=returns, seed=0)

    x, lengths = normal(2, 5, 3).astype("f4"), np.array([5, 2])
    outputs, state = layer("both")(x, lengths=lengths)
    np.testing.assert_array_equal(layer("sequence")(x, lengths=lengths).data, outputs.data)
    last = layer("last")(x, lengths=lengths).data
    finals = [one[0].data for one in state[-2:]] if both else [state[-1][0].data]
    np.testing.assert_array_equal(last, np.concatenate(finals, -1))
    np.testing.assert_array_equal(last[1, :4], outputs.data[1, 1, :4])
    assert not outputs.data[1, 2:].any()


def trajgru(inputs):
    return nn.TrajGRU(inputs, 3, links=2, flow_channels=4, flow_kernel=3, seed=0)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.LSTM(3, 4, layers=2, peepholes=True, seed=0), (6, 3)),
        (nn.ConvLSTM(2, 3, seed=0), (4, 5, 6, 2)),
        (trajgru(2), (4, 5, 6, 2)),
    ],
    ids=["LSTM", "ConvLSTM", "TrajGRU"],
)
def test_a_sequence_in_two_pieces_is_the_same(layer, shape):
    x = normal(2, *shape).astype("f4")
    whole, _ = layer(x)
    first, state = layer(x[:, :2])
    second, _ = layer(x[:, 2:], state)
    assert first.shape == (2, 2, *whole.shape[2:])
    np.testing.assert_allclose(second.data, whole.data[:, 2:], atol=1e-6)


@pytest.mark.slow
def test_dropout_lies_between_layers():
    x = normal(2, 6, 3).astype("f4")
    for layers, differs in ((1, False), (2, True)):
        layer = nn.GRU(3, 4, layers, dropout=0.5, returns="sequence", seed=0)
        with nn.drawing(1):
            y = layer(x).data
        assert (y != layer.eval()(x).data).any() == differs


def test_lstm_starts_by_remembering():
    for bias in (nn.LSTM(3, 2).bias_0, nn.ConvLSTM(1, 2).bias):
        np.testing.assert_array_equal(bias.data, [0, 0, 1, 1, 0, 0, 0, 0])


def test_convlstm_without_input_unrolls_its_state():
    layer = nn.ConvLSTM(0, 4, seed=0)
    h, c = normal(2, 5, 6, 4).astype("f4"), normal(2, 5, 6, 4, seed=1).astype("f4")
    outputs, state = layer(None, (h, c), steps=3)
    assert outputs.shape == (2, 3, 5, 6, 4)
    assert layer.weight_input is None
    again, _ = layer(None, state, steps=1)
    four, _ = layer(None, (h, c), steps=4)
    np.testing.assert_allclose(again.data[:, 0], four.data[:, 3], atol=1e-6)


def test_encoders_state_carries_gradients_into_a_forecaster():
    encoder, forecaster = nn.ConvLSTM(1, 4, seed=0), nn.ConvLSTM(0, 4, seed=1)
    _, state = encoder(normal(2, 3, 5, 6, 1).astype("f4"))
    outputs, _ = forecaster(None, state, steps=2)
    ops.mean(outputs * outputs).backward()
    assert all(np.abs(p.grad).max() > 0 for p in encoder.parameters())


@pytest.mark.parametrize(
    ("layer", "arguments", "sentence"),
    [
        ((0, 2), (None, None, 3), "without an input expected in_channels=0, a state and steps"),
        ((1, 2), (None, "state", 3), "found in_channels=1"),
        ((0, 2), (None, "state", None), "steps=None"),
        ((1, 3), ("x", "state", None), r"state \(h, c\) of shape \(1, 4, 4, 3\).*\(1, 4, 4, 2\)"),
        ((0, 3), (None, "state", 2), r"state \(h, c\) of shape \(1, 4, 4, 3\)"),
    ],
)
def test_wrong_calls_are_refused(layer, arguments, sentence):
    x, state, steps = arguments
    x = np.zeros((1, 2, 4, 4, 1), np.float32) if x else None
    state = (np.zeros((1, 4, 4, 2), np.float32),) * 2 if state else None
    with pytest.raises(ShapeError, match=sentence):
        nn.ConvLSTM(*layer)(x, state, steps)


def test_trajgru_without_input_unrolls_its_state():
    outputs, _ = trajgru(0)(None, normal(2, 5, 6, 3).astype("f4"), steps=3)
    assert outputs.shape == (2, 3, 5, 6, 3)
