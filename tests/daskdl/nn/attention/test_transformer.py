"""Blocks of a Transformer beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import normal


def beside(torch, cross, **settings):
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
            for held in (*maps, mine.output):
                held.bias.data[:] = normal(8)
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
    ours, theirs = beside(torch, False, norm_first=norm_first, activation=activation)
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
    ours, theirs = beside(torch, True, norm_first=norm_first, causal=True)
    x, memory = normal(2, 5, 8).astype("f4"), normal(2, 3, 8).astype("f4")
    keys = np.array([[True] * 3, [True, False, True]])
    right = theirs(
        torch.tensor(x), torch.tensor(memory), tgt_mask=torch.tensor(~np.tri(5, dtype=bool)),
        memory_key_padding_mask=torch.tensor(~keys),
    )  # fmt: skip
    np.testing.assert_allclose(ours(x, memory, memory_mask=keys).data, right.detach(), atol=2e-5)


def test_dropout_is_only_for_training():
    layer, x = nn.TransformerBlock(4, 2, 6, 0.5, seed=0), normal(2, 3, 4).astype("f4")
    y = layer.eval()(x).data
    np.testing.assert_array_equal(layer(x).data, y)
    assert (layer.train()(x).data != y).any()


def test_what_does_not_fit_is_said():
    x = np.ones((2, 3, 4), "f4")
    with pytest.raises(SettingsError, match="memory exactly if cross=True, found cross=True and"):
        nn.TransformerBlock(4, 2, 6, cross=True)(x)
    with pytest.raises(ShapeError, match=r"TransformerBlock: expected .* \(N, T, 5\)"):
        nn.TransformerBlock(5, 1, 6)(x)
    with pytest.raises(SettingsError, match="relu or gelu, found 'tanh'"):
        nn.FeedForward(4, 6, activation="tanh")
