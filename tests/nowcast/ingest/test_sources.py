"""Files behind files, folders and patterns."""

from __future__ import annotations

import pytest

from daskdl.errors import DataError
from nowcast.ingest.sources import find_files


@pytest.fixture
def folder(tmp_path):
    for name in ("b.h5", "a.h5", "below/c.h5", ".hidden/d.h5", ".e.h5", "rain.zarr/zarr.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_a_folder_gives_all_below_it_but_hidden_ones_and_stores(folder):
    files = find_files([folder])
    assert [path.name for path in files.found] == ["a.h5", "b.h5", "c.h5"]
    assert files.named == []
    assert files.size() == len("a.h5" + "b.h5" + "below/c.h5")


def test_files_and_patterns_are_named_and_each_comes_once(folder):
    files = find_files([folder / "b.h5", str(folder / "*.h5"), str(folder / "**/c.*"), folder])
    assert [path.name for path in files.named] == ["b.h5", "a.h5", "c.h5"]
    assert len(files) == 3


@pytest.mark.parametrize(
    ("name", "sentence"), [("x.h5", "found nothing there"), ("*.nc", "matches no file")]
)
def test_what_is_not_there_is_named(folder, name, sentence):
    with pytest.raises(DataError, match=sentence):
        find_files([folder / name])


def test_an_empty_name_is_not_the_current_folder():
    with pytest.raises(DataError, match="found an empty name"):
        find_files([""])
