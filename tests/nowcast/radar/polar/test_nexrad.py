"""NEXRAD Level II: split cuts, range folding, message 1 and truncation."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from daskdl.errors import DataError
from nowcast.ingest.scan import group_scans
from nowcast.radar.header import Format
from nowcast.radar.polar import nexrad
from nowcast.radar.reader import read_header, read_sweeps

LBB = "KLBB20160601_150025_V06"


@pytest.mark.parametrize(("name", "dry", "missing"), [("DBZH", 1, 1), ("RHOHV", 0, 2)])
def test_raw_0_is_no_echo_and_raw_1_is_folded(name, dry, missing):
    raw = np.array([[0, 1, 2, 129]], np.float64)
    moment = xr.DataArray(raw * 0.5 - 33, dims=("azimuth", "range"), name=name)
    moment.encoding = {"scale_factor": 0.5, "add_offset": -33.0}
    silent, lost = nexrad.classify(moment)
    assert (silent.sum(), lost.sum()) == (dry, missing)
    assert not silent[0, 2:].any()
    assert not lost[0, 2:].any()


@pytest.mark.parametrize("share", [0.2, 0.9, 0.9999])
def test_a_volume_that_breaks_off_is_an_error(polar, tmp_path, share):
    content = (polar / LBB).read_bytes()
    path = tmp_path / "KLBB"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(DataError, match=r"KLBB: truncated: expected .* bytes or more, found"):
        read_header(path)


def test_zeros_after_the_name_are_no_volume(tmp_path):
    path = tmp_path / "zeros"
    path.write_bytes(b"AR2V0006.001" + bytes(400_000))
    with pytest.raises(DataError, match="zeros: expected times from 1980-01-01 on"):
        read_header(path)


def test_a_record_that_unpacks_to_too_much_is_refused(polar, tmp_path, monkeypatch):
    monkeypatch.setattr(nexrad, "MOST_RECORD", 100_000)
    with pytest.raises(DataError, match="records of at most 0 MB unpacked"):
        read_sweeps([polar / LBB], Format.NEXRAD)


@pytest.mark.slow
def test_only_the_records_of_the_lowest_cut_are_unpacked(polar, monkeypatch):
    sizes = []
    unpacked = nexrad._unpacked
    monkeypatch.setattr(nexrad, "_unpacked", lambda record: sizes.append(1) or unpacked(record))
    read_sweeps([polar / LBB], Format.NEXRAD)
    content = (polar / LBB).read_bytes()
    assert len(sizes) < content.count(b"1AY&SY") / 4


@pytest.fixture(scope="module")
def chunks(polar, tmp_path_factory):
    """The volume in chunks as they arrive in real time: the header, then a record in each file."""
    folder = tmp_path_factory.mktemp("chunks")
    content = (polar / LBB).read_bytes()
    ends, at = [], 24
    while at < len(content):
        at += 4 + abs(struct.unpack_from(">i", content, at)[0])
        ends.append(at)
    starts = [0, *ends[:-1]]
    kinds = ["S"] + ["I"] * (len(ends) - 2) + ["E"]
    for number, (start, end, kind) in enumerate(zip(starts, ends, kinds, strict=True), start=1):
        name = f"20160601-150025-{number:03d}-{kind}"
        (folder / name).write_bytes(content[start:end])
    return sorted(folder.iterdir(), reverse=True)


@pytest.mark.slow
def test_chunks_are_one_scan_equal_to_the_volume(chunks, polar):
    headers = [read_header(path) for path in chunks]
    assert {(header.station, header.format) for header in headers[:-1]} == {("KLBB", Format.NEXRAD)}
    (scan,), repeated = group_scans(headers)
    assert repeated == []
    assert scan.time == np.datetime64("2016-06-01T15:00")
    (sweep,) = read_sweeps([Path(header.path) for header in scan.headers], Format.NEXRAD)
    (whole,) = read_sweeps([polar / LBB], Format.NEXRAD)
    np.testing.assert_array_equal(sweep.dbz, whole.dbz)


def test_a_volume_whose_chunks_are_still_arriving_is_no_scan_yet(chunks):
    early = sorted(chunks)[:3]
    with pytest.raises(DataError, match="20160601-150025-001-S: "):
        read_sweeps(early, Format.NEXRAD)


def test_a_chunk_without_its_name_belongs_to_no_volume(chunks, tmp_path):
    path = tmp_path / "piece"
    path.write_bytes(chunks[3].read_bytes())
    with pytest.raises(DataError, match="piece: expected the name of a chunk"):
        read_header(path)
