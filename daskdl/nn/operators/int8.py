"""Steps of whole numbers, which :mod:`daskdl.nn.core.int8_steps` makes of quantised nodes."""

from __future__ import annotations

from daskdl import ops
from daskdl.nn.operators.convolution import windows
from daskdl.nn.operators.table import Call, Operator, Value, channels_second, elementwise


def rounded(call: Call, x: Value) -> Value:
    """Round x to what bytes stand for: QuantizeLinear, and DequantizeLinear of it."""
    return elementwise(
        ops.fake_quantize, x, of_x=call.get("of_x"), alone=bool(call.get("alone", 0))
    )


def conv(call: Call, x: Value, words: Value, scale: Value, bias: Value = None) -> Value:
    """Cross-correlate (N, C, H, W) with int8 filters ``shape``, (M, H, W, C / groups)."""
    shape = call.get("shape")
    x, settings = windows(call, x, shape[1:3])
    more = {"shape": shape, "of_x": call.get("of_x"), **settings}
    return channels_second(ops.int8_conv2d(x, words, scale, bias, **more))


def linear(call: Call, x: Value, words: Value, scale: Value, bias: Value = None) -> Value:
    """Multiply rows by an int8 matrix ``shape``, (out, in)."""
    more = {"shape": call.get("shape"), "of_x": call.get("of_x")}
    return ops.int8_linear(x, words, scale, bias, **more)


#: By names that no file can have: nodes of files are checked by the other table.
STEPS: dict[str, Operator] = {"int8:Round": rounded, "int8:Conv": conv, "int8:Linear": linear}
