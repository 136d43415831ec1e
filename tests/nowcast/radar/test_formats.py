"""Formats are recognised by content, whatever the name; other files get one clear sentence."""

from __future__ import annotations

import gzip
import shutil

import h5py
import numpy as np
import pytest

from daskdl.errors import DataError
from nowcast.radar.formats import recognise
from nowcast.radar.header import Format
from nowcast.radar.reader import read_header, read_sweeps

HELCHTEREN = "polar_sequence/20200207130500.rad.behel.pvol.dbzh.scanz.hdf"
FILES = {
    "polar/KLBB20160601_150025_V06": Format.NEXRAD,
    "polar/KLIX20050828_180149.gz": Format.NEXRAD,
    "polar/T_PAGZ35_C_ENMI_20170421090837.hdf": Format.ODIM,
    "polar/T_PAZE63_C_LFPW_20230420065446.h5": Format.ODIM,
    HELCHTEREN: Format.ODIM,
    "polar/SUR210819000227.RAWKPJV": Format.IRIS,
    "polar/2013051000000600dBZ.vol": Format.RAINBOW,
    "knmi/2010/08/RAD_NL25_RAP_5min_201008260000.h5": Format.KNMI,
    "bom/prcp-c10/66/2020/10/31/66_20201031_000000.prcp-c10.nc": Format.CFNETCDF,
    "fmi/20160928/201609281800_fmi.radar.composite.lowest_FIN_SUOMI1.pgm.gz": Format.FMI,
}
# Station, time and site of the header; elevation, shape, weakest and strongest echo (dBZ) of the
# lowest sweep, and the least share of gates without echo. In NEXRAD's split cut the lowest is the
# surveillance sweep; message 1 has no site.
POLAR_FILES = {
    "polar/KLBB20160601_150025_V06": (
        "KLBB", "2016-06-01T15:00:26", "33.65414,-101.81416,1029",
        0.527, (720, 1832), -28.5, 59.5, 0.83,
    ),
    "polar/KLIX20050828_180149.gz": (
        "KLIX", "2005-08-28T18:01:49", "None", 0.396, (367, 460), -13.0, 54.0, 0.67,
    ),
    "polar/T_PAZE63_C_LFPW_20230420065446.h5": (
        "07083", "2023-04-20T06:53:44", "50.12832,3.81181,209", 0.4, (360, 267), -8.0, 37.0, 0.79,
    ),
    HELCHTEREN: (
        "06475", "2020-02-07T13:05:04", "51.06907,5.40640,140", 0.3, (360, 800), -28.0, 60.5, 0.79,
    ),
    "polar/SUR210819000227.RAWKPJV": (
        "Surgavere, Radar", "2021-08-19T00:02:27.432", "58.48231,25.51866,157",
        0.483, (359, 833), -16.58, 46.18, 0.56,
    ),
    "polar/2013051000000600dBZ.vol": (
        "143DEX", "2013-05-10T00:00:06", "50.85663,6.37997,117", 0.6, (361, 400), -31.5, 48.0, 0.9,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POLAR_FILES, ids=lambda name: name[-12:])
def test_headers_of_real_volumes(radar_dir, name):
    station, time, site, *_ = POLAR_FILES[name]
    header = read_header(radar_dir / name)
    assert (header.station, header.times[0]) == (station, np.datetime64(time))
    assert str(header.site) == site
    assert header.single_sweep == ("LFPW" in name)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLAR_FILES, ids=lambda name: name[-12:])
def test_lowest_sweeps_of_real_volumes(radar_dir, name):
    *_, elevation, shape, weakest, strongest, silent = POLAR_FILES[name]
    (sweep,) = read_sweeps([radar_dir / name], FILES[name])
    echo = sweep.dbz[np.isfinite(sweep.dbz)]
    assert (sweep.elevation, sweep.dbz.shape) == (pytest.approx(elevation, abs=1e-3), shape)
    assert (echo.min(), echo.max()) == pytest.approx((weakest, strongest))
    assert silent < np.isneginf(sweep.dbz).mean() < silent + 0.02
    assert (sweep.site is None) == (POLAR_FILES[name][2] == "None")
    assert (sweep.rhohv is not None) == ("KLBB" in name or "SUR" in name)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "format"), FILES.items(), ids=lambda x: str(x)[-12:])
def test_a_file_is_recognised_under_any_name(radar_dir, tmp_path, name, format):
    path = tmp_path / "scan.txt"
    shutil.copyfile(radar_dir / name, path)
    assert recognise(path) is format
    assert read_header(path).format is format


@pytest.mark.parametrize(("name", "format"), FILES.items(), ids=lambda x: str(x)[-12:])
def test_a_truncated_file_is_an_error_that_names_it(radar_dir, tmp_path, name, format):
    content = (radar_dir / name).read_bytes()
    path = tmp_path / "cut.h5"
    path.write_bytes(content[: len(content) // 60])
    with pytest.raises(DataError, match=r"cut\.h5: "):
        read_header(path)


@pytest.mark.parametrize("packed", [False, True])
def test_text_named_h5_is_one_clear_sentence(tmp_path, packed):
    path = tmp_path / "scan.h5"
    text = b"this is a text file\n"
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(DataError, match=r"scan\.h5: expected a radar file .*b'this is a te'"):
        recognise(path)


def test_an_empty_file_is_refused_as_empty(tmp_path):
    (tmp_path / "a.nc").touch()
    with pytest.raises(DataError, match=r"a\.nc: the file is empty"):
        recognise(tmp_path / "a.nc")


def test_odim_profiles_and_other_hdf5_are_refused_and_named(tmp_path):
    with h5py.File(tmp_path / "comp.h5", "w") as file:
        file.attrs["Conventions"] = "ODIM_H5/V2_2"
        file.create_group("what").attrs["object"] = "VP"
    with pytest.raises(DataError, match="object PVOL, SCAN, COMP, IMAGE, found 'VP'"):
        recognise(tmp_path / "comp.h5")
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["weights"] = [1.0]
    with pytest.raises(DataError, match="found one with weights"):
        recognise(tmp_path / "other.h5")
    with h5py.File(tmp_path / "radial2.nc", "w") as file:
        file.attrs["Conventions"] = "Cf/Radial 2.0"
    with pytest.raises(DataError, match="expected CfRadial 1 or 2, found"):
        recognise(tmp_path / "radial2.nc")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"\x01\r\r\n123 \r\r\nSDUS53 KLOT 010000\r\r\nN0Q", "NEXRAD Level III.*Level II"),
        (b"version https://git-lfs.github.com/spec/v1", "pointer of git-lfs.*git lfs pull"),
        (b"\xfd7zXZ\x00", "an xz or zstd archive; unpack"),
        (b"SDUS53 KLOT 010000\r\r\nN0BLOT\r\r\n", "NEXRAD Level III"),
        (b"BUFR\x00\x01", "BUFR; give"),
        (b"CDF\x05", "netCDF of 64-bit data.*nccopy"),
        (b"\x89PNG\r\n\x1a\n", "a picture, which has colours"),
        (b"GIF89a", "a picture"),
        (b"PK\x03\x04", "a zip archive"),
        (b"a".ljust(257, b"\0") + b"ustar\0", "a tar archive"),
        (b"<!DOCTYPE html><html>", "a web page"),
    ],
)
def test_other_formats_are_named_with_a_remedy(tmp_path, content, named):
    (tmp_path / "a").write_bytes(content.ljust(600))
    with pytest.raises(DataError, match=named):
        recognise(tmp_path / "a")
