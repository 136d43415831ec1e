"""Attention, positions that are added before it, and blocks of a Transformer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from tests.daskdl.gradients import normal
from tests.daskdl.nn.like_pytorch import check_like_pytorch


def split_attention(torch, ours, mask=None, key_mask=None):
    """Return PyTorch's attention with the names of ours: one map each instead of three in one."""

    class Split(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("query", "key", "value", "output"):
                setattr(self, name, torch.nn.Linear(ours.features, ours.features))

        def forward(self, query, key, value):
            maps = [self.query, self.key, self.value]
            return torch.nn.functional.multi_head_attention_forward(
                *(x.transpose(0, 1) for x in (query, key, value)),
                ours.features, ours.heads, None,
                torch.cat([m.bias for m in maps]), None, None, False, 0.0,
                self.output.weight, self.output.bias, need_weights=False,
                use_separate_proj_weight=True, q_proj_weight=self.query.weight,
                k_proj_weight=self.key.weight, v_proj_weight=self.value.weight,
                attn_mask=None if mask is None else torch.tensor(~mask),
                key_padding_mask=None if key_mask is None else torch.tensor(~key_mask),
            )[0].transpose(0, 1)  # fmt: skip

    return Split()


class Masked(nn.Module):
    """The layer with its masks, as a function of its three inputs."""

    def __init__(self, layer, **masks):
        self.layer, self.masks = layer, masks

    def forward(self, *inputs):
        return self.layer(*inputs, **self.masks)


@settings(max_examples=10)
@given(
    heads=st.integers(1, 3),
    width=st.integers(1, 3),
    t=st.integers(1, 4),
    s=st.integers(1, 4),
    masked=st.booleans(),
    padded=st.booleans(),
)
def test_agrees_with_pytorch(heads, width, t, s, masked, padded, torch):
    rng = np.random.default_rng(t * 10 + s)
    mask, key_mask = rng.random((t, s)) < 0.6, rng.random((2, s)) < 0.6
    mask[:, 0] = key_mask[:, 0] = True
    mask, key_mask = mask if masked else None, key_mask if padded else None
    layer = nn.MultiHeadAttention(heads * width, heads, seed=0)
    ours = Masked(layer, mask=mask, key_mask=key_mask)
    theirs = split_attention(torch, layer, mask, key_mask)
    names = {name: name.removeprefix("layer.") for name, _ in ours.named_parameters()}
    shapes = [(2, n, heads * width) for n in (t, s, s)]
    # The gradient to the keys' bias is zero but for roundings.
    check_like_pytorch(torch, ours, theirs, *shapes, channels=False, names=names, tolerance=4e-5)


def test_causal_is_a_triangle_and_one_input_attends_to_itself():
    layer, x = nn.MultiHeadAttention(4, 2, seed=0), normal(2, 5, 4).astype("f4")
    expected = layer(x, x, x, mask=np.tri(5, dtype=bool)).data
    np.testing.assert_array_equal(layer(x, causal=True).data, expected)
    later = x.copy()
    later[:, 3:] += 1
    np.testing.assert_array_equal(layer(later, causal=True).data[:, :3], expected[:, :3])


@pytest.mark.parametrize(
    "layer",
    [nn.MultiHeadAttention(4, 2, 0.5, seed=0), nn.TransformerBlock(4, 2, 6, 0.5, seed=0)],
    ids=lambda layer: type(layer).__name__,
)
def test_dropout_in_training_alone(layer):
    x = normal(2, 5, 4).astype("f4")
    with nn.drawing(1):
        first = layer(x).data
    with nn.drawing(1):
        np.testing.assert_array_equal(layer(x).data, first)
    inference = layer.eval()(x).data
    assert (inference != first).any()
    np.testing.assert_array_equal(inference, layer(x).data)


@pytest.mark.parametrize("features", [1, 2, 5, 8])
def test_positions_are_sines_and_cosines(features):
    y = nn.PositionalEncoding(features)(np.zeros((2, 7, features), "f4")).data
    for t in range(7):
        for c in range(features):
            angle = t / 10000 ** ((c - c % 2) / features)
            expected = math.cos(angle) if c % 2 else math.sin(angle)
            np.testing.assert_allclose(y[:, t, c], expected, atol=1e-6)


def equal_blocks(torch, cross, **settings):
    """Return our block and PyTorch's with the same weights."""
    ours = nn.TransformerBlock(8, 2, 12, cross=cross, seed=0, **settings)
    settings.pop("causal", None)
    kind = torch.nn.TransformerDecoderLayer if cross else torch.nn.TransformerEncoderLayer
    theirs = kind(8, 2, 12, 0.0, batch_first=True, **settings)
    parts = [(ours.attention, theirs.self_attn)]
    parts += [(ours.cross, theirs.multihead_attn)] if cross else []
    norms = [ours.norm_attention, *([ours.norm_cross] if cross else []), ours.norm_network]
    with torch.no_grad():
        for mine, other in parts:
            maps = mine.query, mine.key, mine.value
            other.in_proj_weight.copy_(torch.tensor(np.concatenate([m.weight.data for m in maps])))
            for layer in (*maps, mine.output):
                layer.bias.data[:] = normal(8)
            other.in_proj_bias.copy_(torch.tensor(np.concatenate([m.bias.data for m in maps])))
        pairs = [(m.output, o.out_proj) for m, o in parts]
        pairs += [(ours.network.widen, theirs.linear1), (ours.network.narrow, theirs.linear2)]
        for i, norm in enumerate(norms):
            norm.weight.data[:], norm.bias.data[:] = normal(8, seed=i), normal(8, seed=i + 5)
            pairs.append((norm, getattr(theirs, f"norm{i + 1}")))
        for mine, other in pairs:
            other.weight.copy_(torch.tensor(mine.weight.data))
            other.bias.copy_(torch.tensor(mine.bias.data))
    return ours, theirs


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_agrees_with_pytorch(norm_first, activation, torch):
    ours, theirs = equal_blocks(torch, False, norm_first=norm_first, activation=activation)
    x, keys = normal(2, 5, 8).astype("f4"), np.ones((2, 5), bool)
    keys[1, 3:] = False
    right = theirs(torch.tensor(x), src_key_padding_mask=torch.tensor(~keys))
    result = ours(x, key_mask=keys)
    np.testing.assert_allclose(result.data, right.detach(), atol=2e-5)
    dy = normal(2, 5, 8, seed=3).astype("f4")
    result.backward(dy)
    right.backward(torch.tensor(dy))
    for mine, other in (
        (ours.network.widen.weight, theirs.linear1.weight),
        (ours.norm_attention.weight, theirs.norm1.weight),
        (ours.attention.output.weight, theirs.self_attn.out_proj.weight),
    ):
        np.testing.assert_allclose(mine.grad, other.grad, atol=1e-4)


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_agrees_with_pytorch(norm_first, torch):
    ours, theirs = equal_blocks(torch, True, norm_first=norm_first, causal=True)
    x, memory = normal(2, 5, 8).astype("f4"), normal(2, 3, 8).astype("f4")
    keys = np.array([[True] * 3, [True, False, True]])
    right = theirs(
        torch.tensor(x), torch.tensor(memory), tgt_mask=torch.tensor(~np.tri(5, dtype=bool)),
        memory_key_padding_mask=torch.tensor(~keys),
    )  # fmt: skip
    np.testing.assert_allclose(ours(x, memory, memory_mask=keys).data, right.detach(), atol=2e-5)
