"""Universal Format: a volume written by its specification is read as xradar reads it."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.ingest.rain_map import map_scan
from nowcast.ingest.scan import group_scans
from nowcast.ingest.settings import IngestSettings
from nowcast.ingest.sources import target_grid
from nowcast.radar.header import Format
from nowcast.radar.polar.uf import MANDATORY
from nowcast.radar.reader import read_header, read_sweeps

RAYS, GATES, NO_DATA = 36, 60, -32768


def write_uf(
    path: Path, elevations: tuple[float, ...] = (0.5, 1.5), names: tuple[bytes, ...] = (b"DZ",)
) -> Path:
    """Write a volume: a block of 30 dBZ in the lowest sweep, 31 dBZ in the next; else no data."""
    with path.open("wb") as file:
        for sweep, elevation in enumerate(elevations, start=1):
            for ray in range(RAYS):
                values = np.full(GATES, NO_DATA, ">i2")
                if 5 <= ray < 12:
                    values[10:30] = 100 * (29 + sweep)
                file.write(_record(sweep, ray, elevation, values, names))
    return path


def _record(
    sweep: int, ray: int, elevation: float, values: np.ndarray, names: tuple[bytes, ...]
) -> bytes:
    count, data_header = len(names), MANDATORY.size // 2 + 1
    field_header = data_header + 3 + 2 * count
    data = field_header + 19 * count
    words = data - 1 + GATES
    mandatory = MANDATORY.pack(
        b"UF", words, data_header, data_header, data_header, ray + 1, 1, ray + 1, 1, sweep,
        b"RADAR   ", b"SITE    ", 50, 30, 64 * 36, 5, 15, 0, 120,
        2020, 6, 1, 12, 0, 10 * sweep, b"UT", round(64 * (10 * ray + 5)), round(64 * elevation),
        1, round(64 * elevation), 64 * 18, 2020, 6, 1, b"test    ", NO_DATA,
    )  # fmt: skip
    header = struct.pack(">3h", count, 1, count)
    for i, name in enumerate(names):
        header += struct.pack(">2sh", name, field_header + 19 * i)
    field = struct.pack(
        ">13h2s2h2s2h", data, 100, 0, 0, 1000, GATES, 1000, 64, 64, 0, 0, 64 * 5, 64, b"  ",
        0, 100, b"  ", 0, 16,
    )  # fmt: skip
    record = mandatory + header + count * field + values.tobytes()
    marker = struct.pack(">I", len(record))
    return marker + record + marker


def test_the_header(tmp_path):
    header = read_header(write_uf(tmp_path / "a.uf"))
    assert header.format is Format.UF
    assert header.station == "RADAR"
    assert header.times == (np.datetime64("2020-06-01T12:00:10"),)
    assert (header.site.latitude, header.site.longitude) == pytest.approx((50.51, 5.25))
    assert header.site.altitude == 120


def test_sweeps_are_as_xradar_reads_them(tmp_path):
    path = write_uf(tmp_path / "a.uf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import xradar

        tree = xradar.io.open_uf_datatree(str(path))
        others = [tree[f"sweep_{i}"].to_dataset().load() for i in range(2)]
        latitude = float(tree.to_dataset()["latitude"])
        tree.close()
    for sweep, other in zip(read_sweeps([path], Format.UF, 2), others, strict=True):
        np.testing.assert_allclose(other["azimuth"], sweep.azimuth)
        # The words give the middle of the first gate (Barnes, 1980); xradar adds half a gate.
        np.testing.assert_allclose(other["range"] - 500.0, sweep.range)
        np.testing.assert_array_equal(other["DBTH"].values.astype(np.float32), sweep.dbz)
        assert float(other["elevation"][0]) == sweep.elevation
        assert latitude == pytest.approx(sweep.site.latitude, abs=1e-6)


def test_times_are_read_in_their_zone(tmp_path):
    path = write_uf(tmp_path / "a.uf")
    path.write_bytes(path.read_bytes().replace(b"UT", b"MS"))
    assert read_header(path).times == (np.datetime64("2020-06-01T19:00:10"),)
    path.write_bytes(path.read_bytes().replace(b"MS", b"QQ"))
    with pytest.raises(DataError, match=r"expected a time zone of UT, GM, .* found 'QQ'"):
        read_header(path)


@pytest.mark.parametrize(
    ("word", "value", "sentence"),
    [
        (6, 2, "rays of one volume and one place in a sweep, found several"),
        (8, 2, "one record for each ray, found record 2 of one"),
        (14, 640, "rays of one volume and one place in a sweep, found several"),
        (29, 64 * 8, None),
        (29, 0, None),
        (29, NO_DATA, None),
    ],
)
def test_rays_of_a_sweep_must_agree(tmp_path, word, value, sentence):
    path = write_uf(tmp_path / "a.uf", (0.5,))
    content = bytearray(path.read_bytes())
    record = len(content) // RAYS
    fields = list(MANDATORY.unpack_from(content, 4))
    fields[word] = value
    for ray in range(RAYS if word == 29 else 1):
        MANDATORY.pack_into(content, 4 + ray * record, *fields)
    path.write_bytes(bytes(content))
    if sentence:
        with pytest.raises(DataError, match=sentence):
            read_sweeps([path], Format.UF)
    elif value > 0:
        with pytest.raises(DataError, match="of the fixed angle, 8 degrees, found elevations of 0"):
            read_sweeps([path], Format.UF)
    else:
        assert read_sweeps([path], Format.UF)[0].elevation == 0.5


def test_two_fields_of_one_name_are_refused(tmp_path):
    assert len(read_sweeps([write_uf(tmp_path / "a.uf", names=(b"DZ", b"ZT"))], Format.UF)) == 1
    with pytest.raises(DataError, match="expected each field of a ray once, found DZ twice"):
        read_sweeps([write_uf(tmp_path / "b.uf", names=(b"DZ", b"DZ"))], Format.UF)


@pytest.mark.slow
@pytest.mark.parametrize(("fill", "missing"), [("auto", 0.0), ("missing", 60.0)])
def test_no_data_is_no_echo_unless_set_to_missing(tmp_path, fill, missing):
    header = read_header(write_uf(tmp_path / "a.uf"))
    settings = IngestSettings.of(size=64, spacing=1000.0, fill=fill)
    result = map_scan(group_scans([header])[0][0], target_grid(header, settings), settings)
    assert np.nanmax(result.rain) == pytest.approx(2.73, abs=0.01)
    assert result.coverage.shares()[0] >= missing
    assert (result.coverage.missing == 0) == (missing == 0)


NUMBERS, BITS = struct.pack(">2h", 1000, GATES), b"  " + struct.pack(">2h", 0, 16)
#: The name of the field and the word at which its header begins.
FIELD = struct.pack(">2sh", b"DZ", MANDATORY.size // 2 + 6)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda b: b[:-20], "expected .* bytes or more|truncated"),
        (lambda b: b[:10] + b[10:].replace(b"UF", b"XX", 1), "expected a record of a ray at byte"),
        (
            lambda b: b.replace(NUMBERS, struct.pack(">2h", 500, GATES), 1),
            "expected gates of DZ alike in all rays",
        ),
        (
            lambda b: b.replace(BITS, b"  " + struct.pack(">2h", 0, 8)),
            "expected DZ in words of 16 bits, found 8",
        ),
        (
            lambda b: b.replace(FIELD, FIELD[:2] + struct.pack(">h", 9999)),
            "expected positions inside of a ray's record, found word 9999",
        ),
    ],
)
def test_damage_is_named(tmp_path, change, sentence):
    path = write_uf(tmp_path / "a.uf")
    whole = path.read_bytes()
    path.write_bytes(change(whole))
    assert path.read_bytes() != whole
    with pytest.raises(DataError, match=rf"a\.uf: ({sentence})"):
        read_sweeps([path], Format.UF)
