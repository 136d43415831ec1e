"""PyTorch's recurrent layers beside ours: the same weights, packed sequences, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskdl import ops
from daskdl.tensor import Tensor

N, STEPS, FEATURES, CHANNELS = 4, 7, 5, 6


def our_weights(layer: str, parameters: list[Any]) -> list[Tensor | None]:
    """Return the operation's weights of one direction, from PyTorch's four."""
    wi, ws, bi, bs = (p.detach().numpy().copy() for p in parameters)
    biases = {"lstm": [bi + bs, None], "gru": [bi, bs], "rnn": [bi + bs]}[layer]
    arrays = [wi, ws, *biases]
    return [None if a is None else Tensor(a, requires_grad=True) for a in arrays]


def compare(torch: Any, layer: str, lengths: list[int] | None, both: bool, **settings: Any) -> None:
    """Assert that outputs, states and all gradients agree in float32."""
    torch.manual_seed(0)
    kind = getattr(torch.nn, layer.upper())
    model = kind(FEATURES, CHANNELS, batch_first=True, bidirectional=both, **settings)
    rng = np.random.default_rng(0)
    directions = 2 if both else 1
    n_states = 2 if layer == "lstm" else 1
    x = rng.standard_normal((N, STEPS, FEATURES), np.float32)
    starts = rng.standard_normal((n_states, directions, N, CHANNELS), np.float32)
    dy = rng.standard_normal((N, STEPS, directions * CHANNELS), np.float32)
    d_last = rng.standard_normal((directions, N, CHANNELS), np.float32)

    their_x = torch.tensor(x, requires_grad=True)
    their_starts = [torch.tensor(s, requires_grad=True) for s in starts]
    pack, pad = torch.nn.utils.rnn.pack_padded_sequence, torch.nn.utils.rnn.pad_packed_sequence
    fed = their_x
    if lengths is not None:
        fed = pack(fed, lengths, batch_first=True, enforce_sorted=False)
    y, last = model(fed, tuple(their_starts) if layer == "lstm" else their_starts[0])
    if lengths is not None:
        y, _ = pad(y, batch_first=True, total_length=STEPS)
    last = last if layer == "lstm" else (last,)
    ((y * torch.tensor(dy)).sum() + (last[-1] * torch.tensor(d_last)).sum()).backward()

    ours = Tensor(x, requires_grad=True)
    ways = []
    for d in range(directions):
        weights = our_weights(layer, list(model.parameters())[4 * d : 4 * d + 4])
        ways.append([*(Tensor(s[d], requires_grad=True) for s in starts), *weights])
    operation = getattr(ops, layer)
    if both:
        outputs, *finals = ops.bidirectional(operation, ours, *ways, lengths=lengths, **settings)
    else:
        outputs, *final = operation(ours, *ways[0], lengths=lengths, **settings)
        finals = [final]
    loss = ops.mean(outputs * dy) * float(dy.size)
    for final, d in zip(finals, d_last, strict=True):
        loss = loss + ops.mean(final[-1] * d) * float(d.size)
    loss.backward()

    def close(found: Any, expected: Any) -> None:
        expected = expected.detach().numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5 * max(1, np.abs(expected).max()))

    close(outputs.data, y)
    close(ours.grad, their_x.grad)
    for d, way in enumerate(ways):
        for s in range(n_states):
            close(finals[d][s].data, last[s][d])
            close(way[s].grad, their_starts[s].grad[d])
        theirs = [p.grad for p in list(model.parameters())[4 * d : 4 * d + 4]]
        mine = [t for t in way[n_states:] if t is not None]
        for tensor, gradient in zip(mine, theirs, strict=False):
            close(tensor.grad, gradient)
