"""Damaged files of every format: each is read, or refused in a sentence."""

from __future__ import annotations

import gzip
import struct

import pytest

from nowcast.radar import isolated
from tests.nowcast.radar.composite_files import write_geotiff, write_grib, write_odim, write_radolan
from tests.nowcast.radar.fuzz import outcome_of, outcomes
from tests.nowcast.radar.odim_file import write_cfradial, write_sweep
from tests.nowcast.radar.polar.test_uf import write_uf

# Small real files of each format, or a function that writes one.
SOURCES = {
    "nexrad": ["polar/KLIX20050828_180149.gz", "polar/KLBB20160601_150025_V06"],
    "odim_single": ["polar/T_PAZE63_C_LFPW_20230420065446.h5"],
    "iris": ["polar/SUR210819000227.RAWKPJV"],
    "rainbow": ["polar/2013051000000600dBZ.vol"],
    "knmi": ["knmi/2010/08/*"],
    "cfnetcdf": ["bom/prcp-c10/66/2020/10/31/*"],
    "fmi": ["fmi/20160928/*"],
    "odim": write_sweep,
    "cfradial": lambda path: write_cfradial(path, write_sweep(path.with_suffix(".source"))),
    "odim_composite": write_odim,
    "radolan": write_radolan,
    "grib": write_grib,
    "geotiff": write_geotiff,
    "uf": write_uf,
}
# Formats whose files take a second each.
SLOW = {"nexrad", "iris", "rainbow"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Give up on a library that hangs sooner than an ingest does."""
    monkeypatch.setattr(isolated, "SECONDS", 10)


@pytest.fixture
def contents(radar_dir, tmp_path):
    """Return a function that returns the content of a source's files, and their suffix."""

    def read(name):
        source = SOURCES[name]
        if not isinstance(source, list):
            path = source(tmp_path / "made")
            content: bytes = path.read_bytes()
            path.unlink()
            return [content], ""
        paths = [min(radar_dir.glob(one), key=lambda p: p.stat().st_size) for one in source]
        return [small(path.read_bytes()) for path in paths], paths[0].suffix

    return read


def small(content: bytes) -> bytes:
    """Return unpacked content, and of a NEXRAD volume only its first sweeps."""
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
@pytest.mark.parametrize("name", SOURCES)
def test_some_mutants_of_every_format(contents, tmp_path, name):
    count = 6 if name in SLOW else 24 if isinstance(SOURCES[name], list) else 48
    counts = outcomes(*contents(name), tmp_path, count)
    assert sum(counts.values()) == count
    assert counts["no header"] + counts["no scan"] > 0


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SOURCES)
def test_a_thousand_mutants_of_every_format(contents, tmp_path, name):
    counts = outcomes(*contents(name), tmp_path, 1000, seed=1)
    print(name, dict(counts))
    assert sum(counts.values()) == 1000


@pytest.mark.slow
def test_the_small_volumes_can_be_read(contents, tmp_path):
    for content in contents("nexrad")[0]:
        path = tmp_path / "volume"
        path.write_bytes(content)
        assert outcome_of(path) == "read"
