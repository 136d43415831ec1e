from __future__ import annotations

from fractions import Fraction

import numpy as np

from daskdl.collective.plan import plans
from daskdl.optim import SGD
from daskdl.rows import Rows
from daskdl.train.engines.tables import Tables
from tests.daskdl.train.ratings import ITEMS, USERS, Recommender
from tests.daskdl.train.runs import network

TABLES = Tables(("a", "b"), ((5, 2), (3, 4)), 10)


def test_tables_of_a_model_lie_behind_all_else() -> None:
    model = Recommender()
    tables, whole = Tables.of(model.joined), model.snapshot()
    assert tables.names == ("users.weight", "items.weight")
    assert tables.shapes == ((USERS, 6), (ITEMS, 7))
    assert (tables.start, tables.size) == (model.vector.size, whole.size)
    for view, parameter in zip(tables.views(whole), model.tables.values(), strict=True):
        np.testing.assert_array_equal(view, parameter.data)
        assert np.shares_memory(view, whole)
    assert not Tables.of(network().joined)
    assert not Tables.of(Recommender(sparse=False).joined)


def test_parts_have_each_number_once_and_whole_rows() -> None:
    for owners in ([0], [0, 1], [2, 0, 1, 1]):
        found = [s for plan in plans(owners) for s in TABLES.slices(plan.owned)]
        numbers = sorted(k for s in found for k in range(s.start, s.stop))
        assert numbers == list(range(10, TABLES.size))
        assert all((s.start - 10) % 2 == 0 for s in found if s.stop <= 20)
        assert all((s.start - 20) % 4 == 0 for s in found if s.start >= 20)


def test_stretches_step_their_own_rows_in_place() -> None:
    weights = np.zeros(TABLES.size, np.float32)
    span = Fraction(1, 5), Fraction(4, 5)  # rows 1 to 3 of five, 0 and 1 of three
    slots = {"velocity": np.zeros(3 * 2 + 2 * 4, np.float32), "rate": np.array(1.0)}
    stretches = TABLES.stretches(weights, slots, [span])
    assert [(s.table, s.first, s.weights.shape) for s in stretches] == [
        (0, 1, (3, 2)),
        (1, 0, (2, 4)),
    ]
    gradients = [Rows.all_of(np.ones(shape, np.float32)) for shape in TABLES.shapes]
    TABLES.step(SGD(1.0, momentum=0.5), stretches, gradients, 0, scale=3.0)
    a, b = TABLES.views(weights)
    np.testing.assert_array_equal(a[:, 0], [0, -3, -3, -3, 0])
    np.testing.assert_array_equal(b[:, 0], [-3, -3, 0])
    np.testing.assert_array_equal(slots["velocity"], 3)
