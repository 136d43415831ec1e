"""Protobuf's text format: all that it may have in it, and sentences for what it may not."""

from __future__ import annotations

import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.caffe.prototxt import Message, parse

EVERYTHING = """
# a comment
name: "a # no comment" 'and more\\n' layer { kind: MAX; size: 3, size: 4 }
layer: < flag: true, list: [1, 2.5, -3e-2] word: "x\\"y" hex: 0x1F f: .5f >
"""


def test_all_that_a_text_may_have():
    top = parse(EVERYTHING, "n")
    assert top.word("name") == "a # no commentand more\n"
    one, two = top.parts("layer")
    assert one.word("kind") == "MAX"
    assert one.integers("size") == [3, 4]
    assert two.flag("flag", False)
    assert two.numbers("list") == [1, 2.5, -0.03]
    assert two.word("word") == 'x"y'
    assert two.integer("hex") == 31
    assert two.number("f") == 0.5
    assert isinstance(top.part("none"), Message)
    assert top.integer("none", 7) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("layer {", "ends within"),
        ("layer }", "line 1: expected ':' or '{' behind a name, found 'layer'"),
        ("\n\na: {} 5", "line 3: expected the name of a field, found '5'"),
        ("a: ", "expected a value, found 'the end of the file'"),
        ('a: "never ends', "expected a name, number, text or mark"),
        ("a: \x01", "expected a name, number, text or mark"),
        ("a" + "{a" * 40, "nested deeper than 30 times"),
        ("a: [" + "1," * 200_000, "at most 100000 values"),
        ("a:1 " * 200_000, "more than 100000 fields"),
    ],
)
def test_what_is_no_text_of_protobuf(text, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        parse(text, "n")


def test_values_that_are_not_what_is_asked_for():
    top = parse("a: 1.5 b: word c { } d: 99999999999999999999 e: nan f: -1", "n")
    for read, sentence in (
        (lambda: top.integer("a"), "a: expected a whole number from 0 to 1048576, found 1.5"),
        (lambda: top.number("b"), "b: expected a number, found 'word'"),
        (lambda: top.flag("b", True), "b: expected true or false, found 'word'"),
        (lambda: top.word("c"), "c: expected text, found { ... }"),
        (lambda: top.part("b"), "b: expected { ... }, found 'word'"),
        (lambda: top.integer("d"), "d: expected a whole number"),
        (lambda: top.number("e"), "e: expected a number, found nan"),
        (lambda: top.integer("f"), "f: expected a whole number"),
    ):
        with pytest.raises(ModelFileError, match=sentence):
            read()
