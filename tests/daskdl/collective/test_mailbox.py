from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from daskdl.collective.mailbox import Mailbox


def test_words_come_in_order_and_answers_to_whom_they_are_for() -> None:
    mailbox = Mailbox()
    assert mailbox.put("a")
    assert mailbox.put("b")
    assert [mailbox.take(1), mailbox.take(1)] == ["a", "b"]
    mailbox.give(3, "three")
    assert mailbox.answer(3).result(1) == "three"
    assert not mailbox.answer(4).done()
    mailbox.given(3)
    assert not mailbox.answer(3).done()


def test_a_member_to_which_nothing_is_said_leaves() -> None:
    mailbox = Mailbox()
    assert mailbox.take(0.01) is None
    assert not mailbox.put("too late")


def test_nobody_waits_at_one_that_is_closed() -> None:
    mailbox = Mailbox()
    with ThreadPoolExecutor(2) as threads:
        word, answer = (
            threads.submit(mailbox.take, 60),
            threads.submit(mailbox.answer(0).result, 60),
        )
        mailbox.close()
        assert word.result(30) is None
        assert answer.result(30) is None
    assert not mailbox.put("a")
    mailbox.give(0, "nobody asks any more")
