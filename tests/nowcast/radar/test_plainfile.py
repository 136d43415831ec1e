"""Files packed by gzip or bzip2, whole and broken."""

from __future__ import annotations

import bz2
import gzip

import pytest

from daskdl.errors import DataError
from nowcast.radar import plainfile
from nowcast.radar.plainfile import plain_file, read_bytes

TEXT = bytes(range(256)) * 400


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_content_is_that_of_the_plain_file(tmp_path, pack):
    path = tmp_path / "file.x"
    path.write_bytes(pack(TEXT))
    assert read_bytes(path) == TEXT
    assert read_bytes(path, 10) == TEXT[:10]
    with plain_file(path) as plain:
        assert plain.read_bytes() == TEXT
        assert (plain == path) == (pack is bytes)
    assert plain.exists() == (pack is bytes)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_file_that_breaks_off_is_named(tmp_path, pack):
    path = tmp_path / "file.x"
    path.write_bytes(pack(TEXT)[:-9])
    with pytest.raises(DataError, match=r"file\.x: cannot be"), plain_file(path):
        pass
    with pytest.raises(DataError, match=r"file\.x: cannot be read"):
        read_bytes(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_more_than_the_most_is_refused_before_it_is_written(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(plainfile, "MOST_BYTES", 3 << 20)
    path = tmp_path / "bomb.gz"
    for size, fits in (((3 << 20), True), ((3 << 20) + 1, False)):
        path.write_bytes(pack(bytes(size)))
        if fits:
            assert len(read_bytes(path)) == size
            continue
        with pytest.raises(DataError, match=r"bomb\.gz: expected .* at most 3 MB unpacked"):
            read_bytes(path)
        with (
            pytest.raises(DataError, match="at most 3 MB"),
            plain_file(path),
        ):
            pass
        assert len(read_bytes(path, 100)) == 100
