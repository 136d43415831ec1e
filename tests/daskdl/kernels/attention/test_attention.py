"""Attention: the operation, and the kernel alone, and rows of an embedding table."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.kernels.attention.attention import Weighing, attention, gradients
from daskdl.kernels.runtime.precision import computing_in
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.tensor import Tensor, watched_operations
from tests.daskdl.gradients import check_gradient, normal

sizes = st.integers(1, 4)


@settings(max_examples=15)
@given(t=sizes, s=sizes, c=sizes, d=sizes, causal=st.booleans(), masked=st.booleans())
def test_gradient_and_agreement(t, s, c, d, causal, masked, torch):
    arrays = normal(2, 3, t, c), normal(2, 3, s, c, seed=1), normal(2, 3, s, d, seed=2)
    mask = np.random.default_rng(t).random((2, 1, t, s)) < 0.5
    mask[..., 0] = True
    mask = mask if masked else None
    check_gradient(lambda *qkv: ops.attention(*qkv, mask=mask, causal=causal), *arrays)
    seen = np.tri(t, s, dtype=bool) if causal else np.ones((t, s), bool)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, arrays), attn_mask=torch.tensor(seen if mask is None else seen & mask)
    )
    np.testing.assert_allclose(
        ops.attention(*arrays, mask=mask, causal=causal).data, expected, atol=1e-12
    )


@pytest.mark.parametrize(
    ("half", "tolerance"), [(False, 3e-6), (True, 0.03)], ids=["float32", "bf16"]
)
def test_several_tiles_of_queries_and_keys(half, tolerance, torch):
    """More than one tile each way, odd numbers, by-head views, one mask for all heads."""
    n, h, t, s, c, d = 1, 2, 131, 301, 37, 20
    arrays = [
        normal(n, steps, h, width, seed=i).astype("f4").transpose(0, 2, 1, 3)
        for i, (steps, width) in enumerate([(t, c), (s, c), (s, d), (t, d)])
    ]
    mask = np.random.default_rng(0).random((t, s)) < 0.7
    mask[:, 0] = True
    mine = [Tensor(a, requires_grad=True) for a in arrays[:3]]
    with computing_in("bf16" if half else "float32"):
        y = ops.attention(*mine, mask=mask, causal=True)
    y.backward(arrays[3])
    peers = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays[:3]]
    expected = torch.nn.functional.scaled_dot_product_attention(
        *peers, attn_mask=torch.tensor(mask & np.tri(t, s, dtype=bool))
    )
    expected.backward(torch.tensor(arrays[3], dtype=torch.float64))
    np.testing.assert_allclose(y.data, expected.detach(), atol=tolerance)
    for tensor, peer in zip(mine, peers, strict=True):
        np.testing.assert_allclose(tensor.grad, peer.grad, atol=tolerance)


def test_bits_do_not_depend_on_threads_or_the_batch():
    arrays = [normal(3, 2, 120, 16, seed=i).astype("f4") for i in range(4)]

    def results(of, threads):
        inputs = [Tensor(a[of], requires_grad=True) for a in arrays[:3]]
        with thread_budget(threads):
            y = ops.attention(*inputs, causal=True)
            y.backward(arrays[3][of])
        return [y.data, *(x.grad for x in inputs)]

    whole = results(slice(None), 1)
    for shared, alone, one in zip(
        results(slice(None), 3), results(slice(1, 2), 1), whole, strict=True
    ):
        np.testing.assert_array_equal(shared, one)
        np.testing.assert_array_equal(alone, one[1:2])


@pytest.mark.slow
def test_memory_is_linear_in_steps():
    def attend(x):
        with thread_budget(1):
            ops.attention(Tensor(x, requires_grad=True), x, x).backward(x)

    x = normal(1, 4096, 8).astype("f4")
    attend(x[:, :8])  # compiling takes memory, too
    tracemalloc.start()
    attend(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4096 * 4096  # bytes: a quarter of one matrix of weights


@pytest.mark.slow
def test_dropped_weights_have_a_gradient_and_a_mean():
    x = [normal(2, 70, 4, seed=i) for i in range(3)]
    check_gradient(lambda *qkv: ops.attention(*qkv, rate=0.3, seed=2, counter=1), *x)
    ones = np.ones((2, 70, 4))
    dropped = ops.attention(x[0], x[1], ones, rate=0.3, seed=2).data
    assert abs(dropped.mean() - 1) < 0.05
    assert dropped.std() > 0.01


@pytest.mark.slow
def test_a_query_that_may_look_nowhere_gets_nan():
    x = normal(1, 3, 4)
    y = ops.attention(x, x, x, mask=np.array([[True], [False], [True]])).data
    assert np.isnan(y[0, 1]).all()
    assert np.isfinite(y[0, [0, 2]]).all()


@pytest.mark.long
def test_operations_of_a_file_compute_the_same():
    x, mask = normal(2, 2, 9, 4), np.tri(9, 9, 2, dtype=bool)
    seen = []
    with watched_operations(lambda function, *_: seen.append(function.__name__)):
        y = ops.attention(x, x, x, mask=mask)
    assert "softmax" in seen
    np.testing.assert_allclose(ops.attention(x, x, x, mask=mask).data, y.data, atol=1e-14)


def test_single_precision_stays():
    x = normal(2, 3, 4).astype("f4")
    y = ops.attention(x, x, x, causal=True, rate=0.5, seed=1)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(
        ops.attention(x, x, x, causal=True, rate=0.5, seed=1).data, y.data
    )


@pytest.mark.slow
@given(
    ids=hnp.arrays(
        np.int32,
        hnp.array_shapes(max_dims=3, max_side=4),
        elements={"min_value": 0, "max_value": 4},
    )
)
def test_gradient_of_embedding(ids):
    check_gradient(lambda table: ops.embedding(table, ids), normal(5, 3))


def test_embedding_without_ids_is_empty():
    table = Tensor(np.ones((3, 2)), requires_grad=True)
    y = ops.embedding(table, np.empty((0, 4), int))
    y.backward(np.empty((0, 4, 2)))
    assert y.shape == (0, 4, 2)
    assert (table.grad == 0).all()


def test_layouts_have_the_same_bits_and_results_are_ordered_as_queries():
    rng = np.random.default_rng(0)
    by_step = rng.standard_normal((4, 2, 33, 3, 20), np.float32)  # (N, T, heads, C)
    views = [x.transpose(0, 2, 1, 3) for x in by_step]
    whole = [np.ascontiguousarray(x) for x in views]
    turned = [np.asfortranarray(x) for x in whole]
    how = Weighing(causal=True)
    results = []
    for q, k, v, dy in (views, whole, turned):
        y, saved = attention(q, k, v, how)
        results.append([y, *gradients(dy, saved, how)])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    assert results[0][0].transpose(0, 2, 1, 3).flags.c_contiguous
    assert results[1][0].flags.c_contiguous
