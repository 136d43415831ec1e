"""ConvLSTM and TrajGRU in PyTorch, which has no layers for them; channels first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any


def convlstm(x: Any, h: Any, c: Any, weight_input: Any, weight_state: Any, bias: Any) -> list[Any]:
    """Return the output of each step of ``x`` (T, N, in, H, W)."""
    import torch

    pad = weight_state.shape[2] // 2
    frames = torch.conv2d(x.flatten(0, 1), weight_input, bias, padding=weight_input.shape[2] // 2)
    frames = frames.unflatten(0, x.shape[:2])
    return convlstm_steps(frames, h, c, partial(torch.conv2d, weight=weight_state, padding=pad))[0]


def convlstm_steps(
    frames: Iterable[Any], h: Any, c: Any, convolve: Callable[[Any], Any]
) -> tuple[list[Any], tuple[Any, Any]]:
    """Return the output of each step and the last state; a frame is a convolved input, or None."""
    outputs = []
    for frame in frames:
        gates = convolve(h) if frame is None else frame + convolve(h)
        i, f, g, o = gates.chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return outputs, (h, c)


def warp(image: Any, flow: Any) -> Any:
    """Return the image (N, C, H, W) sampled where the flow (N, 2, H, W) points, in pixels."""
    import torch

    height, width = image.shape[2:]
    rows, columns = torch.meshgrid(
        torch.arange(height, dtype=flow.dtype),
        torch.arange(width, dtype=flow.dtype),
        indexing="ij",
    )
    # grid_sample's -1 and 1 are the outer edges of the outermost pixels, not their centres.
    across = (2 * (columns + flow[:, 0]) + 1) / width - 1
    down = (2 * (rows + flow[:, 1]) + 1) / height - 1
    grid = torch.stack([across, down], -1)
    return torch.nn.functional.grid_sample(image, grid, padding_mode="zeros", align_corners=False)


def trajgru(
    x: Any,
    h: Any,
    weight_input: Any,
    weight_state: Any,
    bias_input: Any,
    bias_state: Any,
    weight_flow_input: Any,
    weight_flow_state: Any,
    bias_flow: Any,
    weight_links: Any,
    bias_links: Any,
) -> list[Any]:
    """Return the state after each step of ``x`` (T, N, in, H, W); arguments as in `ops.trajgru`."""
    import torch

    def convolve(x: Any, weight: Any, bias: Any = None) -> Any:
        return torch.conv2d(x, weight, bias, padding=weight.shape[2] // 2)

    outputs, n_steps = [], x.shape[:2]
    frames = convolve(x.flatten(0, 1), weight_input, bias_input).unflatten(0, n_steps)
    parts = convolve(x.flatten(0, 1), weight_flow_input, bias_flow).unflatten(0, n_steps)
    for frame, part in zip(frames, parts, strict=True):
        hidden = torch.nn.functional.leaky_relu(part + convolve(h, weight_flow_state), 0.2)
        flows = convolve(hidden, weight_links, bias_links).split(2, dim=1)
        samples = torch.cat([warp(h, flow) for flow in flows], 1)
        state = torch.conv2d(samples, weight_state[:, :, None, None], bias_state)
        (r, z, n), (sr, sz, sn) = frame.chunk(3, 1), state.chunk(3, 1)
        z = (z + sz).sigmoid()
        new = torch.nn.functional.leaky_relu(n + (r + sr).sigmoid() * sn, 0.2)
        h = (1 - z) * new + z * h
        outputs.append(h)
    return outputs
