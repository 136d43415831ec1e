"""URLs: one, a pattern, a folder or many."""

from __future__ import annotations

import fsspec
import pytest

from daskdl.data.sources.urls import expanded, opened
from daskdl.errors import DataError


def test_what_urls_mean(tmp_path, monkeypatch):
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text(name)
    a, b = str(tmp_path / "a.txt"), str(tmp_path / "b.txt")
    assert expanded(tmp_path / "a.txt", {}) == [a]
    assert expanded(str(tmp_path), {}, ".txt") == [a, b]
    assert expanded(f"{tmp_path}/*.txt", {}) == [a, b]
    assert expanded([b, a], {}) == [b, a]
    monkeypatch.chdir(tmp_path)
    assert expanded("a.txt", {}) == [a]
    with opened(a, {}) as file:
        assert file.read() == b"a.txt"


def test_stores_that_are_not_local():
    system = fsspec.filesystem("memory")
    system.pipe({"/sets/a.txt": b"1", "/sets/b.txt": b"2"})
    assert expanded("memory://sets/*.txt", {}) == ["memory:///sets/a.txt", "memory:///sets/b.txt"]
    with opened("memory:///sets/b.txt", {}) as file:
        assert file.read() == b"2"


def test_none_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"nothing\*: expected files, found none"):
        expanded(f"{tmp_path}/nothing*", {})
    with pytest.raises(DataError, match="expected URLs of files, found none"):
        expanded([], {})
