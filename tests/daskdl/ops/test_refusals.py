"""Errors of operations about arguments that they cannot take; test_reduction.py has losses."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.recurrence import arguments, convlstm_arguments, trajgru_arguments

nan, inf = float("nan"), float("inf")


def ones(*shape):
    return np.ones(shape)


def whole(*shape):
    return np.ones(shape, np.int64)


def changed(arrays, **other):
    """Return arguments of a cell with others in some places, as in ``_2=...``."""
    return [other.get(f"_{i}", array) for i, array in enumerate(arrays)]


IMAGE, PAIR, REGION, NONE = ones(1, 4, 4, 3), (2, 3), ones(1, 5), (None, None)
POINTS = [None, [0.0], [0.0], None]
X, W, TURNED = ones(1, 6, 6, 4), ones(8, 3, 3, 4), (ones(1, 3, 3, 8), ones(8, 2, 2, 3))
VOLUME, FILTERS = ones(1, 2, 3, 3, 2), ones(4, 1, 2, 2, 2)
RNN, LSTM = arguments("rnn", 2, 3), convlstm_arguments()
GRU, ALONE = trajgru_arguments(), trajgru_arguments(inputs=0)
SIZES = ("resize_bilinear", "adaptive_avg_pool2d", "adaptive_max_pool2d")
NOTHING = "expected stride and dilation of at least 1 and pad of at least 0"
#: Operations whose sentences begin with another name.
CALLED = {"max_pool1d": "pooling", "avg_pool3d": "pooling"}
#: Settings without a meaning: the operation, its sentence, arrays and settings.
SETTINGS = [
    ("gelu", "approximate 'none' or 'tanh', found 'erf'", ones(3), {"approximate": "erf"}),
    ("clip", "expected low <= high, found 1 and 0", ones(3), {"low": 1, "high": 0}),
    *(("dropout", f"expected 0 <= rate <= 1, found {rate}", ones(3), {"rate": rate, "seed": 0})
      for rate in (-0.1, 1.1, nan)),
    ("attention", "expected 0 <= rate <= 1, found 2", *ones(3, 2, 7, 4), {"rate": 2}),
    *(("embedding", f"padding: expected an id from 0 to 2, found {padding}",
       ones(3, 2), whole(2), {"padding": padding}) for padding in (-1, 3)),
    ("layer_norm", "axes: expected 1 to 2 .* found 3", ones(*PAIR), *NONE, {"axes": 3}),
    ("group_norm", "divide the 4 channels of x, found 3", ones(2, 3, 4), *NONE, {"groups": 3}),
    ("local_response_norm", "size: expected a whole number of at least 1, found 0",
     ones(*PAIR), {"size": 0}),
    ("pad", "constant, reflect or edge, found 'wrap'",
     ones(3), {"widths": [(1, 1)], "mode": "wrap"}),
    ("scatter", "expected reduction none, add, mul, max, min, found",
     ones(3), ones(1), {"index": (np.array([1]),), "reduction": "mean"}),
    ("max_pool2d", "kernel_size: expected at least 1", IMAGE, {"kernel_size": (0, 2)}),
    ("max_pool2d", r"pad: expected 0 or more and less than kernel_size \(2, 2\), found \(0, 2, 0",
     IMAGE, {"kernel_size": (2, 2), "pad": (0, 2, 0, 0)}),
    ("grid_sample", "found 'square' and 'zeros'",
     ones(1, 2, 2, 1), ones(1, 2, 2, 2), {"mode": "square"}),
    *((name, sentence, IMAGE, REGION, {"size": PAIR} | settings)
      for name in ("roi_pool", "roi_align")
      for sentence, settings in [
          ("size: expected at least 1", {"size": (0, 3)}),
          ("scale: expected a number above 0, found nan", {"scale": nan}),
          ("scale: expected a number above 0, found -1.0", {"scale": -1.0}),
      ]),
    *((name, r"size: expected at least 1, found \(0, 1\)", IMAGE, {"size": (0, 1)})
      for name in SIZES),
    *(("upsample_nearest", "expected 2 whole numbers of at least 1, found", IMAGE, {"scale": scale})
      for scale in ((1.5, 1), (2, 2, 2))),
    ("interpolate", "expected nearest, linear or cubic, found 'area'",
     ones(1, 2, 2, 1), {"points": POINTS, "mode": "area"}),
    *((name, NOTHING, *arrays, None, settings)
      for name, arrays in (("conv2d", (X, W)), ("conv_transpose2d", TURNED))
      for settings in ({"stride": (0, 1)}, {"dilation": (1, 0)}, {"pad": (-1, 0, 0, 0)})),
    ("rnn", "expected 'tanh' or 'relu', found 'sigmoid'", *RNN, {"nonlinearity": "sigmoid"}),
    ("convlstm", "steps: expected at least 1 without x, found 0",
     *changed(LSTM, _0=None, _3=None), {"steps": 0}),
    ("trajgru", "steps: expected at least 1 without x, found None", *ALONE),
    ("trajgru", "slope: expected at least 0, found -1", *GRU, {"slope": -1}),
]  # fmt: skip
#: Arrays that do not fit the operation or each other, in the same form.
SHAPES = [
    ("prelu", r"expected slope of shape \(3,\), the channels", ones(*PAIR), ones(2)),
    *((name, "expected x of float32 or float64, found int64", whole(3), settings)
      for name, settings in [
          ("relu", {}), ("threshold", {}), ("hard_shrink", {}), ("soft_shrink", {}),
          ("softsign", {}), ("dropout", {"rate": 0.5, "seed": 0}),
      ]),
    *((name, r"expected an axis of x, .* \(2, 3\), found 2", ones(*PAIR), {"axis": 2})
      for name in ("softmax", "log_softmax")),
    *(("matmul", r"expected shapes \(\.\.\., M, K\) and \(\.\.\., K, N\)", ones(*a), ones(*b))
      for a, b in (((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (2, 3)))),
    ("linear", r"expected x of numbers, found object \(2, 5\)",
     np.ones((2, 5), object), ones(4, 5), None),
    ("det", r"expected x of shape \(\.\.\., M, M\)", ones(*PAIR)),
    ("einsum", "expected 2 arrays for 'ij,jk->ik', found 1",
     ones(3, 4), {"equation": "ij,jk->ik"}),
    ("einsum", "does not fit shapes", *ones(2, 3, 4), {"equation": "ij,jk->ik"}),
    ("attention", r"found \(2, 3, 4\), \(2, 3, 3\) and \(2, 3, 4\)",
     ones(2, 3, 4), ones(2, 3, 3), ones(2, 3, 4)),
    ("attention", "mask: expected bool, found float64", *ones(3, 2, 3, 4), {"mask": ones(3, 3)}),
    *(("attention", r"leading axes, and a mask, that .* query \(2, 3, 4\)",
       ones(2, 3, 4), ones(n, 3, 4), ones(n, 3, 4), {"mask": mask})
      for n, mask in ((3, None), (2, np.ones((4, 3, 3), bool)))),
    *(("embedding", sentence, table, np.array(ids)) for sentence, table, ids in [
        (r"expected a table of shape \(rows, C\), found \(3,\)", ones(3), [1]),
        (r"expected integer ids, found float64 \(1,\)", ones(3, 2), [1.0]),
        (r"expected integer ids, found bool \(1,\)", ones(3, 2), [True]),
        ("expected ids from 0 to 2, the rows of the table, found 3", ones(3, 2), [3]),
    ]),
    ("batch_norm", r"residual: expected shape \(2, 3\)", ones(*PAIR), *NONE, ones(1, 3)),
    *(("batch_norm", sentence, *arrays, None) for sentence, *arrays in [
        (r"weight: expected shape \(3,\)", ones(*PAIR), ones(4)),
        ("weight: expected float64 as x, found float32", ones(*PAIR), np.ones(3, "f4")),
        ("x: expected float32 or float64, found int64", whole(*PAIR), None),
        ("found a scalar", np.ones(()), None),
    ]),
    ("layer_norm", r"weight: expected shape \(3,\)", ones(*PAIR), ones(4), None),
    ("group_norm", r"found \(4,\)", ones(4), *NONE, {"groups": 2}),
    ("normalize", "x: expected float32 or float64, found int64", whole(*PAIR)),
    ("local_response_norm", "x: .* found int64", whole(*PAIR)),
    ("split", "expected sizes that add up to", ones(3), {"sizes": [1, 3], "axis": 0}),
    ("pad", r"expected 2 pairs of widths for shape \(3, 3\)", ones(3, 3), {"widths": [(1, 1)]}),
    ("pad", "expected to reflect less than x has",
     ones(3), {"widths": [(3, 1)], "mode": "reflect"}),
    ("dft", "an axis before its last", ones(2, 7, 1), {"axis": -1}),
    *(("mean", rf"expected axes of x, whose shape is \(2, 3\), each once, found {shown}",
       ones(*PAIR), {"axis": axis})
      for axis, shown in ((2, 2), (-3, -3), ((0, 0), r"\(0, 0\)"), ("channels", "channels"))),
    *(("amax", rf"found axis {axis} of shape", ones(*shape), {"axis": axis})
      for axis, shape in ((2, (2, 3)), (1, (2, 0)))),
    ("cumsum", r"expected an axis of x, whose shape is \(3,\)", ones(3), {"axis": 1}),
    ("topk", "found k=6, axis=-1", ones(5), {"k": 6}),
    *(("max_pool2d", sentence, np.zeros(shape), {"kernel_size": size})
      for sentence, shape, size in [
          ("x: expected 4 axes, found shape", (4, 4, 3), (2, 2)),
          (r"hold a window \(5, 2\)", (1, 4, 4, 3), (5, 2)),
          ("expected images of 1x1 or more", (1, 0, 4, 3), (1, 1)),
      ]),
    ("max_pool_nd", "expected x that holds a window",
     ones(1, 2, 1), {"kernel_size": (3,), "stride": (1,), "pad": (0, 0), "dilation": (1,)}),
    ("max_pool1d", r"expected x of shape \(N, T, C\), found \(2, 3\)",
     ones(*PAIR), {"kernel_size": 2}),
    ("avg_pool3d", r"expected x of shape \(N, D, H, W, C\), found \(2, 3\)",
     ones(*PAIR), {"kernel_size": (2, 2, 2)}),
    ("grid_sample", r"expected x \(N, ..., C\) and grid \(N, ..., 2\)",
     ones(1, 2, 2, 1), ones(1, 2, 2, 3)),
    *((name, f"regions: {sentence}", ones(2, 3, 3, 1), np.array(regions), {"size": (1, 1)})
      for name in ("roi_pool", "roi_align")
      for sentence, regions in [
          (r"expected shape \(R, 5\), .* found \(2, 4\)", ones(2, 4)),
          ("expected images 0 to 1, found 2", [[2.0, 0, 0, 1, 1]]),
          ("expected finite numbers", [[0, 1, 1, nan, 3]]),
          ("expected finite numbers", [[0, 1, 1, inf, 3]]),
      ]),
    *((name, "expected images with pixels", ones(1, 0, 4, 2), {"size": (1, 1)}) for name in SIZES),
    ("conv1d", r"expected x of shape .* found \(2, 3, 4, 5\)",
     ones(2, 3, 4, 5), ones(1, 3, 5), None),
    ("conv1d", r"expected an image of at least \(1, 5\)", ones(2, 4, 5), ones(1, 5, 5), None),
    *(("conv2d", *row) for row in [
        (r"expected x with 4 channels, .* found \(1, 6, 6, 3\)", X[..., :3], W, None),
        ("expected x and weight both float32 or both float64, found float32 and float64",
         X.astype("f4"), W, None),
        (r"found uint8 and float64; daskdl\.data\.image\.Normalize makes numbers",
         X.astype("u1"), W, None),
        (r"expected bias of shape \(8,\), found \(7,\)", X, W, ones(7)),
        ("expected groups that divide the 8 filters, found 3", X, W, None, {"groups": 3}),
        (r"expected an image of at least \(7, 7\) after padding, found \(6, 6\)",
         X, W, None, {"dilation": (3, 3)}),
        (r"expected x of shape \(N, H, W, in\), found \(6, 6, 4\)", X[0], W, None),
    ]),
    ("conv3d", r"expected .* found \(1, 2, 3, 3, 2\) and \(4, 1", VOLUME, FILTERS[..., :1], None),
    ("conv_transpose3d", "expected x", VOLUME, FILTERS, None),
    ("conv_transpose3d", "leaves nothing of the result",
     ones(1, 2, 3, 3, 4), FILTERS, None, {"pad": (1, 1, 0, 0, 0, 0)}),
    *(("conv_transpose2d", sentence, *TURNED, None, settings) for sentence, settings in [
        (r"output_pad .* less than stride \(1, 1\), found \(1, 0\)", {"output_pad": (1, 0)}),
        (r"pad \(2, 2, 0, 0\) leaves nothing", {"pad": (2, 2, 0, 0)}),
        ("groups that divide the 8 channels of x, found 3", {"groups": 3}),
    ]),
    ("conv_transpose2d", r"found \(1, 3, 3, 7\) and \(8, 2, 2, 3\)",
     TURNED[0][..., 1:], TURNED[1], None),
    ("conv_transpose2d", r"bias of shape \(3,\), found \(2,\)", *TURNED, ones(2)),
    ("unfold", "expected at least 3 elements along axis 1", ones(3, 2), {"axis": 1, "size": 3}),
    ("fold", r"expected windows of an axis of 5, found \(2, 3\)",
     ones(*PAIR), {"axis": 0, "length": 5}),
    *(("rnn", sentence, x, *RNN[1:]) for sentence, x in [
        ("x: expected float32 or float64, found int64", RNN[0].astype(int)),
        ("weight_state: expected float32 as x has, found float64", RNN[0].astype("f4")),
        (r"x: expected shape \(any, any, any\), found \(3, 3\)", RNN[0][0]),
    ]),
    *(("rnn", f"lengths: expected {sentence}", *RNN, {"lengths": lengths})
      for sentence, lengths in [
          (r"2 whole numbers, one a sample, found int64 of shape \(1,\)", [1]),
          (r"2 whole numbers, one a sample, found float64 of shape \(2,\)", [1.0, 2.0]),
          ("0 to 3, the steps of x, found 4", [1, 4]),
          ("0 to 3, the steps of x, found -1", [-1, 2]),
      ]),
    ("convlstm", "c: expected float64 as h has, found float32",
     *changed(LSTM, _2=LSTM[2].astype("f4"))),
    ("convlstm", "weight_input: expected an array as x is one, found None",
     *changed(LSTM, _3=None)),
    ("convlstm", "weight_state: expected an odd, square kernel", *changed(LSTM, _4=LSTM[4][:, :2])),
    ("trajgru", r"weight_input: expected an odd, square kernel, found \(2, 2\)",
     *changed(GRU, _2=GRU[2][:, :2, :2])),
    ("trajgru", "weight_input: expected an array as x is one", *changed(GRU, _2=None)),
    ("trajgru", "weight_flow_input: expected None exactly if x is None", *changed(GRU, _6=None)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "case"),
    [(SettingsError, case) for case in SETTINGS] + [(ShapeError, case) for case in SHAPES],
    ids=lambda case: " ".join(case[:2]) if isinstance(case, tuple) else "",
)
def test_unfit_arguments_are_refused(error, case):
    name, sentence, *arrays = case
    settings = arrays.pop() if isinstance(arrays[-1], dict) else {}
    with pytest.raises(error, match=f"^{CALLED.get(name, name)}: .*{sentence}"):
        getattr(ops, name)(*arrays, **settings)
