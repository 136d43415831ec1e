"""Draws: one seed gives one sequence, on every thread, and none is given twice."""

from __future__ import annotations

import threading

from daskdl.nn.draws import drawing, next_draw


def test_a_seed_gives_one_sequence_without_repeats():
    with drawing(7):
        first = [next_draw() for _ in range(3)]
    with drawing(7):
        assert [next_draw() for _ in range(3)] == first
    assert len(set(first)) == 3
    assert {seed for seed, _ in first} == {7}


def test_an_inner_pass_does_not_disturb_the_outer():
    with drawing(1):
        expected = [next_draw(), next_draw()]
    with drawing(1):
        found = [next_draw()]
        with drawing(2):
            next_draw()
        found.append(next_draw())
    assert found == expected


def test_threads_draw_on_their_own():
    seen = []

    def draw():
        seen.append(next_draw())

    with drawing(3):
        thread = threading.Thread(target=draw)
        thread.start()
        thread.join()
        assert next_draw() == (3, 0)
    assert seen[0][0] != 3


def test_without_a_seed_no_two_draws_are_the_same():
    assert len({next_draw() for _ in range(10)}) == 10


def test_a_seed_may_be_made_when_the_first_layer_draws():
    made = []

    def seed():
        made.append(7)
        return 7

    with drawing(seed):
        assert not made
        assert [next_draw(), next_draw()] == [(7, 0), (7, 1)]
    assert made == [7]
