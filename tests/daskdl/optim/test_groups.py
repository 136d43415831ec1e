"""Groups of parameters, and their ranges in the vector."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import (
    LAMB,
    LBFGS,
    NO_DECAY_OF_VECTORS,
    SGD,
    Adam,
    AdamW,
    ClipNorm,
    Ftrl,
    Group,
    Groups,
    Layout,
    RMSprop,
)
from daskdl.optim.method import Step
from daskdl.optim.ranges import ALONE, Grouping, Ranges
from daskdl.rows import Rows
from tests.daskdl.optim import runs
from tests.daskdl.optim.runs import SIZE, gradients, start

GROUPS = (
    Group("*.bias", weight_decay=0.0),
    Group("first.*", rate=0.5),
    Group("*", rate=2.0, weight_decay=0.3),
)
#: The settings of PyTorch's groups for the three parameters of runs.LAYOUT.
RATES, DECAYS = (0.5, 1.0, 2.0), (0.1, 0.0, 0.3)


def settings_of_torch(torch, weights, rate):
    pieces, stop = [], 0
    for n in (20, 5, 12):
        pieces.append(weights[stop : stop + n].clone().requires_grad_())
        stop += n
    return pieces, [
        {"params": [p], "lr": rate * r, "weight_decay": d}
        for p, r, d in zip(pieces, RATES, DECAYS, strict=True)
    ]


@pytest.mark.parametrize(
    ("ours", "name", "more"),
    [
        (SGD(0.1, 0.9, weight_decay=0.1), "SGD", {"momentum": 0.9}),
        (Adam(0.1, weight_decay=0.1), "Adam", {}),
        (AdamW(0.1, weight_decay=0.1), "AdamW", {}),
        (RMSprop(0.1, weight_decay=0.1, centered=True), "RMSprop", {"centered": True}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_agrees_with_pytorchs_groups(ours, name, more, torch):
    method = Groups(ours, GROUPS).on(runs.LAYOUT)
    result = runs.descend(method, dtype=np.float64)
    weights = torch.tensor(runs.start().astype(float))
    pieces, groups = settings_of_torch(torch, weights, 0.1)
    optimizer = getattr(torch.optim, name)(groups, **more)
    for i in range(runs.STEPS):
        g = torch.tensor(runs.gradients(np.concatenate([p.detach().numpy() for p in pieces]), i))
        for piece, part in zip(pieces, g.split([20, 5, 12]), strict=True):
            piece.grad = part.clone()
        optimizer.step()
    runs.assert_close(result, np.concatenate([p.detach().numpy() for p in pieces]))


@runs.few
@given(points=runs.cuts, method=st.sampled_from([SGD(0.1, 0.9), AdamW(), Ftrl()]))
def test_slices_have_the_bits_of_the_whole(points, method):
    groups = Groups(method, GROUPS)
    runs.check_pure(groups.on(runs.LAYOUT))
    runs.check_slices(groups.on(runs.long_layout(301)), points)


def test_a_long_vector_has_the_bits_of_its_slices():
    groups = Groups(AdamW(0.1), GROUPS).on(runs.long_layout(301 + (1 << 20)))
    runs.check_slices(groups, [3, 50, 77], large=True)


def test_the_first_group_that_matches_a_parameter_counts():
    assert Groups(SGD(), GROUPS).on(runs.LAYOUT).ranges.kinds == (2, 1, 3)
    assert Groups(SGD(), GROUPS[::-1]).on(runs.LAYOUT).ranges.kinds == (1,)


def test_rate_of_zero_leaves_parameters_as_they_are():
    method = Groups(AdamW(0.1), (Group("first.*", rate=0.0),)).on(runs.LAYOUT)
    after = runs.descend(method)
    np.testing.assert_array_equal(after[:25], runs.start()[:25])
    assert (after[25:] != runs.start()[25:]).all()


def test_vectors_are_found_by_their_axes():
    method = Groups(SGD(0.1, weight_decay=0.5)).on(runs.LAYOUT)
    assert method.groups == (NO_DECAY_OF_VECTORS,)
    w = np.ones(runs.SIZE, np.float32)
    new, _ = method.update(w, 0 * w, method.init(runs.SIZE), 0)
    np.testing.assert_array_equal(np.flatnonzero(new == 1), np.arange(20, 25))


def test_groups_of_a_method_with_norms_step_alike_in_slices():
    method = Groups(LAMB(0.1, weight_decay=0.1), GROUPS).on(runs.LAYOUT)
    runs.check_joint_slices(method)


def test_groups_without_a_layout_are_refused():
    method = Groups(SGD())
    assert pickle.loads(pickle.dumps(method)) == method
    with pytest.raises(SettingsError, match=r"Groups: expected on\(Layout\.of\(model\)\) before"):
        method.init(37)
    with pytest.raises(SettingsError, match="of the 37 numbers of its layout, found 36"):
        method.on(runs.LAYOUT).init(36)


def test_a_pattern_that_matches_nothing_is_refused():
    with pytest.raises(
        SettingsError,
        match=r"Group: expected a parameter whose name matches 'frist\.\*', found none among the 3 "
        r"of the model \(first\.weight, first\.bias, last\.weight\)",
    ):
        Groups(SGD(), (Group("frist.*"),)).on(runs.LAYOUT)
    with pytest.raises(SettingsError, match=r"matches '\*\.weight' and at most 1 axes, found none"):
        Groups(SGD(), (Group("*.weight", most_axes=1),)).on(runs.LAYOUT)


@pytest.mark.parametrize("inner", [LBFGS(), ClipNorm(SGD(), 1.0), "SGD"], ids=repr)
def test_groups_around_other_wrappers_are_refused(inner):
    with pytest.raises(SettingsError, match=r"Groups: expected a method whose rate .* may differ"):
        Groups(inner)


def test_impossible_groups_are_refused():
    with pytest.raises(SettingsError, match="Group: expected 0 <= rate < inf, found -1"):
        Group(rate=-1)
    with pytest.raises(SettingsError, match="Group: expected 0 <= weight_decay < inf, found -1"):
        Group(weight_decay=-1)
    with pytest.raises(SettingsError, match=r"expected a tuple of Group, found '\*\.bias' in it"):
        Groups(SGD(), ("*.bias",))


def test_tables_have_the_settings_of_their_group():
    layout = Layout(
        ("dense", "users.table", "items.table", "fixed.table"),
        ((2, 3), (4, 2), (4, 2), (4, 2)),
        ("fixed.table",),
        3,
    )
    assert layout.size == 6
    method = Groups(SGD(1.0), (Group("users.*", rate=0.5), Group("items.*", weight_decay=1.0)))
    bound, rows = method.on(layout), Rows.all_of(np.ones((4, 2), np.float32))
    assert not bound.init_rows(8)
    for name, expected in (("users.table", 1.5), ("items.table", -1), ("fixed.table", 2)):
        table = np.full((4, 2), 2, np.float32)
        bound.update_rows(name, table, rows, {}, 0)
        np.testing.assert_array_equal(table, expected)
    weights, _ = bound.update(np.ones(6, np.float32), np.ones(6, np.float32), {}, 0)
    np.testing.assert_array_equal(weights, 0)


def test_one_group_of_all_changes_nothing():
    assert Grouping() == ALONE
    method, w = AdamW(0.1), start()
    put = w, gradients(w, 0), method.init(SIZE)
    whole, _ = method.update(*put, 0)
    twice = Grouping(Ranges((10, SIZE), (0, 1)), (1.0, 1.0), (None, method.weight_decay))
    np.testing.assert_array_equal(method.stepped(*put, Step(0))[0], whole)
    np.testing.assert_array_equal(method.stepped(*put, Step(0, groups=twice))[0], whole)


ranges = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=8).map(
    lambda parts: Ranges(
        tuple(np.cumsum([n for n, _ in parts], dtype=int).tolist()), tuple(k for _, k in parts)
    )
)


def spelled(ranges: Ranges) -> np.ndarray:
    """Return the kind of each number."""
    kinds = np.full(ranges.size, -1)
    for here, kind in ranges:
        kinds[here] = kind
    return kinds


@given(ranges=ranges)
def test_joined_keeps_the_kinds_in_the_fewest_ranges(ranges):
    joined = ranges.joined()
    np.testing.assert_array_equal(spelled(joined), spelled(ranges))
    assert len(joined.kinds) == len(joined.stops) == len({0, *joined.stops}) - 1
    assert all(a != b for a, b in pairwise(joined.kinds))


@given(ranges=ranges, points=st.lists(st.integers(0, 60)))
def test_part_has_the_kinds_of_its_slices(ranges, points):
    stops = sorted({0, *(min(p, ranges.size) for p in points), ranges.size})
    slices = [slice(a, b) for a, b in pairwise(stops)][::2]
    expected = [spelled(ranges)[s] for s in slices]
    kinds = spelled(ranges.part(slices))
    np.testing.assert_array_equal(kinds, np.concatenate([[], *expected]))


def test_ranges_have_a_size_and_arrays():
    assert Ranges((), ()).size == 0
    stops, kinds = Ranges((2, 3), (0, 1)).arrays
    assert stops.tolist() == [2, 3]
    assert kinds.tolist() == [0, 1]
