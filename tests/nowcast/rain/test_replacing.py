"""Putting new files and folders in the place of old ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from nowcast.rain.replacing import beside, remove


@pytest.mark.parametrize("folder", [True, False])
def test_the_old_one_stays_until_the_new_one_is_complete(tmp_path, folder):
    path = tmp_path / "deep" / "thing"

    def write(target, text):
        if folder:
            target.mkdir()
            (target / "file").write_text(text)
        else:
            target.write_text(text)

    def read():
        return (path / "file" if folder else path).read_text()

    for text in ("old", "new"):
        with beside(path) as temporary:
            write(temporary, text)
            if text == "new":
                assert read() == "old"
        assert read() == text

    def fail():
        with beside(path) as temporary:
            write(temporary, "half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert read() == "new"
    assert [entry.name for entry in path.parent.iterdir()] == ["thing"]


def test_removing_nothing_is_no_error(tmp_path):
    remove(tmp_path / "none")


def test_a_folder_that_cannot_be_written_is_told_before_the_work():
    with pytest.raises(OSError) as raised, beside(Path("/proc/forecast.nc")):  # noqa: PT011
        pytest.fail("nothing is to be computed for it")
    assert str(raised.value.filename).startswith("/proc")
