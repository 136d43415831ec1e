from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.data.text import Tokenizer
from daskdl.errors import DataError


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["it's", "10", "o'clock", ",", "žluť", ":", "(", "ok", ")"]),
        ({"lower": False}, ["It's", "10", "o'clock", ",", "Žluť", ":", "(", "OK", ")"]),
        ({"marks": False}, ["it's", "10", "o'clock", "žluť", "ok"]),
        (
            {"tags": True, "marks": False},
            ["it's", "10", "o'clock", "br", "žluť", "ok"],
        ),
    ],
)
def test_words_numbers_and_marks(options, tokens):
    text = "It's 10 o'clock,<br />Žluť: (OK)"
    assert Tokenizer(**options)(text) == tokens


def test_what_only_looks_like_a_tag_is_kept():
    assert Tokenizer()("a < b and b > c, i <3 u") == (
        ["a", "<", "b", "and", "b", ">", "c", ",", "i", "<", "3", "u"]
    )


@pytest.mark.slow
@given(st.text())
def test_nothing_but_spaces_is_lost(text):
    tokens = Tokenizer(lower=False, tags=True)(text)
    assert "".join(tokens) == "".join(text.split()) or any(c.isspace() for c in "".join(tokens))


@pytest.mark.parametrize("value", [None, float("nan"), b"bytes", 3])
def test_refuses_what_is_no_text(value):
    with pytest.raises(DataError, match="expected a text, found"):
        Tokenizer()(value)


def test_pickles():
    tokenizer = Tokenizer(marks=False)
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
