from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from daskdl.train.desk import Desk


def test_words_come_in_order_and_answers_to_whom_they_are_for() -> None:
    desk = Desk()
    assert desk.put("a")
    assert desk.put("b")
    assert [desk.take(1), desk.take(1)] == ["a", "b"]
    desk.give(3, "three")
    assert desk.answer(3).result(1) == "three"
    assert not desk.answer(4).done()
    desk.given(3)
    assert not desk.answer(3).done()


def test_a_member_to_which_nothing_is_said_leaves() -> None:
    desk = Desk()
    assert desk.take(0.01) is None
    assert not desk.put("too late")


def test_nobody_waits_at_one_that_is_closed() -> None:
    desk = Desk()
    with ThreadPoolExecutor(2) as threads:
        word, answer = threads.submit(desk.take, 60), threads.submit(desk.answer(0).result, 60)
        desk.close()
        assert word.result(30) is None
        assert answer.result(30) is None
    assert not desk.put("a")
    desk.give(0, "nobody asks any more")
