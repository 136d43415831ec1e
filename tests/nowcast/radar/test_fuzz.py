"""Damaged files of every format: each is read, or refused in a sentence; nothing else happens."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from nowcast.radar import isolated
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from tests.nowcast.radar.composite_files import (
    write_geotiff,
    write_grib,
    write_odim,
    write_radolan,
)
from tests.nowcast.radar.fuzz import outcome_of, outcomes
from tests.nowcast.radar.odim_file import write_cfradial, write_sweep
from tests.nowcast.radar.polar.test_uf import write_uf

# Small real files of each format.
REAL = {
    Format.NEXRAD: ["polar/KLIX20050828_180149.gz", "polar/KLBB20160601_150025_V06"],
    Format.ODIM: ["polar/T_PAZE63_C_LFPW_20230420065446.h5"],
    Format.IRIS: ["polar/SUR210819000227.RAWKPJV"],
    Format.RAINBOW: ["polar/2013051000000600dBZ.vol"],
    Format.KNMI: ["knmi/2010/08/*"],
    Format.CFNETCDF: ["bom/prcp-c10/66/2020/10/31/*"],
    Format.FMI: ["fmi/20160928/*"],
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """A library that hangs is given up sooner than in an archive."""
    monkeypatch.setattr(isolated, "SECONDS", 10)


# Each file takes a second.
SLOW = {Format.NEXRAD, Format.IRIS, Format.RAINBOW}


def contents(radar_dir: Path, patterns: list[str]) -> tuple[list[bytes], str]:
    paths = [min(radar_dir.glob(pattern), key=lambda p: p.stat().st_size) for pattern in patterns]
    return [small(path.read_bytes()) for path in paths], paths[0].suffix


def small(content: bytes) -> bytes:
    """Return a file unpacked, a NEXRAD volume without most of its sweeps."""
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    if content.startswith(b"AR2V") and content[28:31] != b"BZh":
        return content[: 24 + 900 * 2432]
    if content.startswith(b"AR2V"):
        end = 24
        for _ in range(10):
            end += 4 + abs(struct.unpack_from(">i", content, end)[0])
        return content[:end]
    return content


@pytest.mark.slow
@pytest.mark.parametrize("format", REAL, ids=lambda format: format.name)
def test_some_mutants_of_every_format(radar_dir, tmp_path, format):
    count = 6 if format in SLOW else 24
    found = outcomes(*contents(radar_dir, REAL[format]), tmp_path, count)
    assert sum(found.values()) == count
    assert found["no header"] + found["no scan"] > 0


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format", REAL, ids=lambda format: format.name)
def test_a_thousand_mutants_of_every_format(radar_dir, tmp_path, format):
    found = outcomes(*contents(radar_dir, REAL[format]), tmp_path, 1000, seed=1)
    print(format, dict(found))
    assert sum(found.values()) == 1000


MADE = {
    "odim": write_sweep,
    "cfradial": lambda path: write_cfradial(path, write_sweep(path.with_suffix(".source"))),
    "odim_composite": write_odim,
    "radolan": write_radolan,
    "grib": write_grib,
    "geotiff": write_geotiff,
    "uf": write_uf,
}


def made(tmp_path: Path, name: str) -> bytes:
    path = MADE[name](tmp_path / "made")
    content: bytes = path.read_bytes()
    path.unlink()
    return content


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_mutants_of_made_files(tmp_path, name):
    found = outcomes([made(tmp_path, name)], "", tmp_path, 48)
    assert sum(found.values()) == 48


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", MADE)
def test_a_thousand_mutants_of_made_files(tmp_path, name):
    found = outcomes([made(tmp_path, name)], "", tmp_path, 1000, seed=1)
    print(name, dict(found))
    assert sum(found.values()) == 1000


def test_the_sources_are_of_the_formats_that_they_are_listed_under(radar_dir):
    for format, patterns in REAL.items():
        for pattern in patterns:
            assert read_header(min(radar_dir.glob(pattern))).format is format


@pytest.mark.slow
def test_the_small_volumes_are_whole_where_it_counts(radar_dir, tmp_path):
    for content in contents(radar_dir, REAL[Format.NEXRAD])[0]:
        path = tmp_path / "volume"
        path.write_bytes(content)
        assert outcome_of(path) == "read"
