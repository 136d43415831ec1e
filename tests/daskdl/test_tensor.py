"""The tape: what it records, in which order it goes back, and what it refuses."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from daskdl.tensor import Tensor, no_grad, op, recording, wants_grad, watched_operations


@op
def square(x):
    return x * x, lambda dy: (2 * x * dy,)


def leaf(*values):
    return Tensor(np.array(values, float), requires_grad=True)


def test_array_is_kept_and_shown():
    data = np.zeros((2, 3), np.float32)
    x = Tensor(data)
    assert x.data is data
    assert x.numpy() is data
    assert (x.shape, x.ndim, len(x), x.dtype) == ((2, 3), 2, 2, np.float32)
    assert repr(x) == "Tensor(f32[2, 3])"
    assert np.asarray(x) is data
    assert np.array(x, dtype=float).dtype == np.float64
    assert float(Tensor(2.5)) == 2.5


def test_gradient_of_a_tensor_used_twice_is_the_sum():
    x = leaf(3.0)
    (square(x) + x * x * x).backward()
    np.testing.assert_allclose(x.grad, [6 + 27])


def test_each_operation_goes_back_once_after_all_its_results():
    """A ladder of diamonds has 2**40 paths; each node may be visited only once."""
    calls = []

    @op
    def double(x):
        def backward(dy):
            calls.append(1)
            return (2 * dy,)

        return 2 * x, backward

    x = leaf(1.0)
    y = x
    for _ in range(40):
        y = y + double(y)  # the short way must wait for the long one
    y.backward()
    assert len(calls) == 40
    np.testing.assert_array_equal(x.grad, [3.0**40])


def test_gradients_add_up_over_calls():
    x = leaf(1.0, 2.0)
    for _ in range(2):
        square(x).backward([1.0, 1.0])
    np.testing.assert_array_equal(x.grad, [4, 8])


def test_gradient_does_not_share_memory_with_its_start():
    x, seed = leaf(1.0, 2.0), np.ones(2)
    (x + np.zeros(2)).backward(seed)
    x.grad += 1
    np.testing.assert_array_equal(seed, 1)


def test_lazy_gradient_is_computed_only_if_wanted():
    called = []

    @op
    def product(a, b):
        def first():
            called.append("first")
            return b

        def second():
            called.append("second")
            return a

        return a * b, lambda dy: (lambda: dy * first(), lambda: dy * second())

    weight = leaf(3.0)
    product(np.array([2.0]), weight).backward()
    assert called == ["second"]
    np.testing.assert_array_equal(weight.grad, [2])


@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_unused_results_get_none(used):
    received = []

    @op
    def both(x):
        def backward(d_sum, d_product):
            received.extend([d_sum is not None, d_product is not None])
            zero = np.zeros_like(x)
            return (
                (zero if d_sum is None else d_sum) + (zero if d_product is None else d_product),
            )

        return (x + 1, x * 1), backward

    results = both(leaf(2.0))
    total = results[used[0]]
    for i in used[1:]:
        total = total + results[i]
    total.backward()
    assert received == [0 in used, 1 in used]


def test_second_backward_says_what_to_do():
    y = square(leaf(1.0))
    y.backward()
    with pytest.raises(RuntimeError, match="compute the result again"):
        y.backward()


def test_without_a_gradient_wanted_nothing_is_recorded():
    y = square(Tensor([1.0]))
    assert not wants_grad(y)
    assert wants_grad(square(leaf(1.0)))


def test_no_grad_records_nothing_and_ends():
    x = leaf(1.0)
    with no_grad():
        assert not recording()
        assert not wants_grad(square(x))
    assert recording()
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert recording()


def test_no_grad_nests():
    with no_grad():
        with no_grad():
            pass
        assert not recording()


def test_no_grad_belongs_to_its_thread():
    """Predicting in one Dask thread must not stop another from training."""
    seen = []
    with no_grad():
        other = threading.Thread(target=lambda: seen.append(recording()))
        other.start()
        other.join()
    assert seen == [True]


def test_backward_of_a_vector_asks_for_a_start():
    with pytest.raises(ShapeError, match=r"expected a scalar \(a loss\), found shape \(2,\)"):
        square(leaf(1.0, 2.0)).backward()


def test_gradient_of_another_shape_is_refused():
    @op
    def wrong(x):
        return x, lambda dy: (np.zeros(5),)

    with pytest.raises(ShapeError, match=r"expected a gradient of shape \(1,\), found \(5,\)"):
        wrong(leaf(1.0)).backward()


def test_wrong_number_of_gradients_names_the_operation():
    @op
    def forgetful(a, b):
        return a + b, lambda dy: (dy,)

    with pytest.raises(ShapeError, match=r"forgetful.*expected 2 gradients.*found 1"):
        forgetful(leaf(1.0), leaf(2.0)).backward()


def test_start_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"shape \(2,\), found \(3,\)"):
        square(leaf(1.0, 2.0)).backward(np.ones(3))


def test_leaf_can_be_its_own_loss():
    x = leaf(1.0)
    x.backward()
    np.testing.assert_array_equal(x.grad, [1])


def test_arrays_on_the_left_become_tensors():
    x = leaf(1.0, 2.0)
    for result in (np.ones(2) + x, np.ones(2) * x, np.ones(2) - x, np.ones(2) / x):
        assert isinstance(result, Tensor)
        assert wants_grad(result)


def test_dtype_of_the_tape_is_that_of_the_data():
    x = Tensor(np.ones(3, np.float32), requires_grad=True)
    loss = ops.mean(ops.tanh(x * np.float32(2)) * 3.0)
    loss.backward()
    assert loss.dtype == np.float32
    assert x.grad.dtype == np.float32


@op
def double(x):
    return 2 * x, lambda dy: (2 * dy,)


def test_arrays_that_no_backward_needs_are_let_go():
    x = leaf(1.0, 2.0)
    between = double(x)  # the backward of double does not need its data, unlike that of square
    reference = weakref.ref(between.data)
    loss = double(between)
    del between
    assert reference() is None
    loss.backward([1.0, 1.0])
    assert x.grad.tolist() == [4.0, 4.0]


def test_arrays_kept_for_backward_are_let_go_on_the_way():
    x, seen = leaf(1.0, 2.0), []

    @op
    def look(x):
        return x + 0, lambda dy: (seen.append(reference()), dy)[1:]

    below = look(x)
    between = square(below)
    reference = weakref.ref(between.data)
    loss = ops.sum(square(between))
    del between
    assert reference() is not None
    loss.backward()
    assert seen == [None]
    assert x.grad.tolist() == [4.0, 32.0]


def test_rows_become_an_array_where_nobody_asks_for_rows():
    table = Tensor(np.ones((5, 2)), requires_grad=True)
    ids = np.array([3, 1, 3])
    for factor in (1, 2):  # to a leaf without a gradient, to one with it, to a computed table
        taken = ops.embedding(table if factor == 1 else table * 2.0, ids)
        taken.backward(np.ones((3, 2)))
        taken = ops.embedding(table, ids)
        taken.backward(np.ones((3, 2)))
    np.testing.assert_array_equal(table.grad[:, 0], [0, 5, 0, 10, 0])


def test_arrays_are_handed_out_without_a_copy(torch):
    tensor = Tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    assert np.asarray(tensor) is tensor.data
    assert np.shares_memory(np.from_dlpack(tensor), tensor.data)
    assert torch.from_dlpack(tensor).data_ptr() == tensor.data.ctypes.data
    assert np.asarray(tensor, np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(tensor), tensor.data)


def test_operations_are_reported_to_a_watcher():
    seen = []
    with watched_operations(lambda function, *rest: seen.append((function.__name__, *rest))):
        y = ops.relu(Tensor(np.ones(2)))
    ops.relu(y)
    assert [name for name, *_ in seen] == ["relu"]
    assert seen[0][3][0] is y
