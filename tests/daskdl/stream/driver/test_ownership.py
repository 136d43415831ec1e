"""Partitions are shared out evenly, and none is read by two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from daskdl.stream.driver.partitions import Ownership, fair
from daskdl.stream.queues.records import Partition


def partitions(n: int) -> list[Partition]:
    return [Partition("calls", i) for i in range(n)]


@given(st.integers(0, 12), st.sets(st.integers(0, 6), min_size=1), st.data())
def test_shares_differ_by_one_and_few_change_hands(n, sessions, data):
    all_of = partitions(n)
    owners = {p: data.draw(st.integers(0, 6)) for p in all_of if data.draw(st.booleans())}
    found = fair(all_of, owners, sessions)
    counts = [list(found.values()).count(s) for s in sessions]
    assert set(found) == set(all_of)
    assert max(counts) - min(counts) <= 1
    # Who keeps partitions has no others taken beyond its share.
    for s in sessions:
        had = [p for p in all_of if owners.get(p) == s]
        kept = [p for p in had if found[p] == s]
        assert len(kept) == min(len(had), counts[list(sessions).index(s)])


def test_a_partition_waits_until_its_session_has_let_it_go():
    ownership, all_of = Ownership(), partitions(4)
    assert len(ownership.shares(all_of, [1])[1]) == 4
    shares = ownership.shares(all_of, [1, 2])
    assert (len(shares[1]), shares[2]) == (2, ())
    ownership.follows(1, shares[1])  # it says that it reads two only
    assert len(ownership.shares(all_of, [1, 2])[2]) == 2


@given(st.data())
def test_no_partition_is_ever_read_by_two(data):
    ownership, all_of = Ownership(), partitions(6)
    there: set[int] = {0}
    reading: dict[int, set[Partition]] = {0: set()}
    for step in range(1, 15):
        what = data.draw(st.sampled_from(["join", "lose", "follow"]))
        if what == "join":
            there.add(step)
            reading[step] = set()
        elif what == "lose" and len(there) > 1:
            gone = data.draw(st.sampled_from(sorted(there)))
            there.discard(gone)
            if data.draw(st.booleans()):  # fenced at once, or later
                reading.pop(gone)
                ownership.lost(gone)
        shares = ownership.shares(all_of, sorted(there))
        for session in sorted(there):
            if data.draw(st.booleans()):  # its report has come
                reading[session] = set(shares[session])
                ownership.follows(session, shares[session])
            else:  # or it may read the old and the new
                reading[session] |= set(shares[session])
        everything = [p for held in reading.values() for p in held]
        assert len(everything) == len(set(everything))
