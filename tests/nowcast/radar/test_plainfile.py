"""Files packed by gzip or bzip2, whole and broken."""

from __future__ import annotations

import bz2
import gzip

import pytest

from daskdl.errors import DataError
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
