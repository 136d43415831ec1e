"""Collectives of two ranks and more over socket pairs, without Dask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl.collective.codec import (
    BFloat16,
    add_rounded,
    decode,
    encode,
    encoded_size,
    round_in_place,
)
from daskdl.collective.communicator import Communicator
from daskdl.collective.group import Group
from daskdl.collective.payload import Payload, rows_of, slice_of, split
from daskdl.collective.plan import fold, plans
from daskdl.collective.reduction import Reduction
from daskdl.collective.transport.comm import BrokenGangError
from daskdl.rows import Rows
from tests.daskdl.collective.pairs import over_sockets

Vector = Any


def nearest(x: Vector) -> Vector:
    """Return the nearest bfloat16 by arithmetic: 8 bits of mantissa, ties to even."""
    _, exponent = np.frexp(x.astype(np.float64))
    exponent = np.maximum(exponent, -125)  # subnormal numbers have a fixed spacing
    scale = np.ldexp(1.0, 8 - exponent)
    with np.errstate(over="ignore"):
        return (np.rint(x.astype(np.float64) * scale) / scale).astype(np.float32)


def numbers(n: int = 4096) -> Vector:
    rng = np.random.default_rng(n)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-44, 38, n)
    x = x.astype(np.float32)
    x[:9] = [0, -0.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3.4e38, np.inf, -np.inf, 1e-45]
    return x


def test_the_first_numbers_are_rounded_and_the_others_kept() -> None:
    x = numbers()
    for rounded in (0, 1, 4000, x.size, x.size + 7, -3):
        words, decoded = encode(x, rounded), np.zeros_like(x)
        assert words.size == encoded_size(x.size, rounded)
        decode(words, rounded, decoded)
        k = min(max(rounded, 0), x.size)
        np.testing.assert_array_equal(decoded[:k], nearest(x[:k]))
        np.testing.assert_array_equal(decoded[k:], x[k:])
        round_in_place(x_copy := x.copy(), rounded)
        np.testing.assert_array_equal(x_copy, decoded)


@given(st.floats(width=32, allow_nan=False))
def test_rounding_twice_changes_nothing(number: float) -> None:
    once = np.array([number], np.float32)
    round_in_place(once, 1)
    twice = once.copy()
    round_in_place(twice, 1)
    assert once.tobytes() == twice.tobytes()


def test_nan_stays_nan() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000], np.uint32)
    x = bits.view(np.float32)
    decoded = np.zeros(3, np.float32)
    decode(encode(x, 3), 3, decoded)
    assert np.isnan(decoded).all()
    assert np.isnan(add_rounded(x.copy(), np.ones(3, np.float32), 3)).all()


def test_operands_are_rounded_and_the_sum_is_not() -> None:
    a, b = numbers(), numbers()[::-1].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        want = nearest(a) + nearest(b)
        want[4000:] = a[4000:] + b[4000:]
        total = add_rounded(a.copy(), b, 4000)
    np.testing.assert_array_equal(total, want)


TABLES = ((9, 2), (4, 3))


def payload(shard: int, size: int) -> Payload:
    """Return a shard's numbers and rows, whose sum depends on the order of additions."""
    rng = np.random.default_rng(shard)
    vector = (rng.normal(size=size) * 10.0 ** rng.integers(-3, 4)).astype(np.float32)
    rows = []
    for table in TABLES:
        ids = np.flatnonzero(rng.random(table[0]) < 0.4)
        values = rng.normal(size=(len(ids), table[1])).astype(np.float32)
        rows.append(Rows(ids, values, table))
    sums = float(rng.normal() * 10.0 ** rng.integers(-9, 9)), int(rng.integers(1, 9))
    return Payload(vector, tuple(rows), sums, (float(rng.random()),))


def plus(a: Payload, b: Payload) -> Payload:
    return Payload(
        a.vector + b.vector,
        tuple(x + y for x, y in zip(a.rows, b.rows, strict=True)),
        tuple(x + y for x, y in zip(a.sums, b.sums, strict=True)),
        tuple(map(max, a.maxima, b.maxima)),
    )


owners_of = st.integers(1, 5).flatmap(
    lambda n: st.lists(st.integers(0, n - 1), max_size=6).flatmap(
        lambda rest: st.permutations([*range(n), *rest])
    )
)


@pytest.mark.slow
@settings(max_examples=30)
@given(owners=owners_of, size=st.sampled_from([1, 17, 100, 333]), data=st.data())
def test_every_rank_gets_the_sums_of_the_tree(owners: Any, size: int, data: Any) -> None:
    shards = st.integers(0, len(owners) - 1)
    empty = data.draw(st.sets(shards, max_size=len(owners) - 1), "shards without samples")
    leaves = [None if s in empty else payload(s, size) for s in range(len(owners))]
    top = fold(leaves, lambda level, shard, a, b: plus(a, b))
    want = top[0] if len(top) == 1 else plus(*top)

    def function(comm: Communicator) -> Any:
        reduction, result = Reduction(comm.plan, size, tables=TABLES), []
        for t in range(2):  # the memory is used again
            reduction.begin()
            for s in comm.shards:
                reduction.put(s, None if s in empty else payload(s, size))
            total = comm.reduce_scatter(reduction, t)
            assert (total.sums, total.maxima) == (want.sums, want.maxima)
            vector = np.full(size, np.nan, np.float32)
            split(total.vector, vector, reduction.owned)
            for span in comm.plan.owned:
                for rows, table in zip(total.rows, TABLES, strict=True):
                    first, stop = rows_of(span, table[0])
                    assert rows.part(first, stop).ids.tolist() == [
                        i for i in rows.ids if first <= i < stop
                    ]
            result = [vector, comm.all_gather(vector, t, rows=total.rows)]
        return result

    for vector, rows in over_sockets(owners, function):
        np.testing.assert_array_equal(vector, want.vector)
        for one, other in zip(rows, want.rows, strict=True):
            np.testing.assert_array_equal(one.ids, other.ids)
            np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.parametrize("owners", [[0, 1], [0, 1, 2, 0, 1]])
def test_rounded_messages_give_the_same_bits_on_any_number_of_ranks(owners: list[int]) -> None:
    size = 100

    def function(comm: Communicator) -> Any:
        codec = BFloat16(60)
        reduction = Reduction(comm.plan, size, codec)
        for s in comm.shards:
            reduction.put(s, Payload(payload(s, size).vector))
        vector = np.zeros(size, np.float32)
        split(comm.reduce_scatter(reduction, 0).vector, vector, reduction.owned)
        for s in reduction.owned:
            codec.round(vector[s], s.start)
        comm.all_gather(vector, 0, codec=codec)
        return vector

    (alone,) = over_sockets([0] * len(owners), function)
    for vector in over_sockets(owners, function):
        np.testing.assert_array_equal(vector, alone)


def test_all_reduce_of_one_array_a_shard() -> None:
    def function(comm: Communicator) -> Any:
        return comm.all_reduce({s: np.full((2, 3), s + 1) for s in comm.shards if s != 2})

    for total in over_sockets([0, 1, 1, 2], function):
        np.testing.assert_array_equal(total, np.full((2, 3), 1 + 2 + 4, np.float32))


def test_all_reduce_names_the_arrays_that_it_needs() -> None:
    with pytest.raises(ValueError, match=r"an array for each shard \[0, 1\].*pass a dict"):
        over_sockets([0, 0], lambda comm: comm.all_reduce(np.ones(2)))
    with pytest.raises(ValueError, match=r"arrays of one shape for shards among \[0\].*\(2,\)"):
        over_sockets([0], lambda comm: comm.all_reduce({0: np.ones(2), 3: np.ones(2)}))


def test_notes_go_down_and_arrays_come_up_by_rank() -> None:
    def function(comm: Communicator) -> Any:
        message = comm.broadcast({"request": [b"x", 2]} if comm.rank == 0 else None)
        array = np.arange(comm.rank + 1.0)
        gathered = comm.gather([comm.rank], [array, array + 1])
        comm.barrier()
        return message, gathered

    results = over_sockets([2, 0, 1, 3, 0], function)
    assert all(message == {"request": [b"x", 2]} for message, _ in results)
    assert [up for _, up in results[1:]] == [None] * 3
    for rank, (note, (one, other)) in enumerate(results[0][1]):
        assert note == [rank]
        np.testing.assert_array_equal(one, np.arange(rank + 1.0))
        np.testing.assert_array_equal(other, np.arange(rank + 1.0) + 1)


def test_one_rank_speaks_to_itself() -> None:
    def function(comm: Communicator) -> Any:
        comm.barrier()
        return comm.broadcast(1), comm.gather(2, [np.ones(2)])

    ((message, [(note, (array,))]),) = over_sockets([0, 0], function)
    assert (message, note) == (1, 2)
    np.testing.assert_array_equal(array, np.ones(2))


def test_a_rank_that_fails_ends_it_on_all() -> None:
    def function(comm: Communicator) -> None:
        if comm.rank == 1:
            raise ZeroDivisionError("a mistake")
        with pytest.raises(BrokenGangError, match=r"shard 1\) ended the attempt: Zero.*mistake"):
            comm.barrier()

    with pytest.raises(ZeroDivisionError):
        over_sockets([0, 1], function)


def test_a_rank_at_another_step_is_refused() -> None:
    def function(comm: Communicator) -> None:
        comm.all_gather(np.zeros(64, np.float32), step=comm.rank)

    with pytest.raises(BrokenGangError, match=r"iteration \d, gather 0: worker rank-\d"):
        over_sockets([0, 1], function)


def test_members_cover_the_vector_once() -> None:
    every = plans([0, 0, 1, 2, 1])
    covered = [i for p in every for span in p.owned for i in range(1000)[slice_of(span, 1000)]]
    assert sorted(covered) == list(range(1000))
    assert Group("g", ("a", "b", "c"), (0, 0, 1, 2, 1), 1.0).shards(1) == [2, 4]
