"""Recognising the format of a radar file by its contents, never by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import h5py

from daskdl.errors import DataError
from nowcast.radar.attributes import text, text_of
from nowcast.radar.guard import foreign_file
from nowcast.radar.header import Format
from nowcast.radar.maps import radolan
from nowcast.radar.netcdf import GPM_GROUP
from nowcast.radar.plainfile import WHOLE, is_zarr, read_bytes
from nowcast.radar.polar import uf

HDF5 = b"\x89HDF\r\n\x1a\n"
NETCDF3 = (b"CDF\x01", b"CDF\x02")
#: Tell the formats that have bytes of their own from the first of a file.
SIGNATURES: dict[Format, Callable[[bytes], object]] = {
    Format.NEXRAD: re.compile(rb"AR2V|ARCHIVE2\.|.{4}BZh", re.DOTALL).match,
    Format.RAINBOW: re.compile(rb"\s*<volume").match,
    Format.FMI: re.compile(rb"P5.*obstime", re.DOTALL).match,
    Format.GRIB: re.compile(rb"GRIB").match,
    Format.GEOTIFF: re.compile(rb"II[*+]\x00|MM\x00[*+]").match,
    Format.UF: uf.is_uf,
    Format.RADOLAN: radolan.START.match,
    # Sigmet product header and ingest header: structure identifiers 27 and 23 at bytes 0 and 6144.
    Format.IRIS: re.compile(rb"\x1b\x00.{6142}\x17\x00", re.DOTALL).match,
}
HEAD_BYTES = 6146
ODIM_OBJECTS = {
    "PVOL": Format.ODIM,
    "SCAN": Format.ODIM,
    "COMP": Format.ODIM_COMPOSITE,
    "IMAGE": Format.ODIM_COMPOSITE,
}
# What is met where radar files are looked for, and is not read, with what to give instead.
OTHERS = {
    "a product of NEXRAD Level III": (
        re.compile(rb"(\x01\r\r\n\d+ ?\r\r\n)?[SN][DO]US\d\d [A-Z]{4} \d{6}"),
        "give Level II volumes, or MRMS",
    ),
    "BUFR": (re.compile(rb"BUFR"), "give the same product as ODIM_H5"),
    "a picture, which has colours and no numbers": (
        re.compile(rb"\x89PNG|GIF8|\xff\xd8\xff"),
        "give the files that it was drawn from",
    ),
    "netCDF of 64-bit data (CDF-5)": (re.compile(rb"CDF\x05"), "convert it by nccopy -k nc4"),
    "a zip archive": (re.compile(rb"PK\x03\x04"), "name the archive itself as a source"),
    "a tar archive": (
        re.compile(rb".{257}ustar", re.DOTALL),
        "name it as a source by .tar or .tgz",
    ),
    "a pointer of git-lfs, not the file itself": (
        re.compile(rb"version https://git-lfs"),
        "git lfs pull fetches it",
    ),
    "an xz or zstd archive": (re.compile(rb"\xfd7zXZ|\x28\xb5\x2f\xfd"), "unpack it first"),
    "a web page, such as of an error": (
        re.compile(rb"\s*<(!DOCTYPE|html|\?xml)", re.IGNORECASE),
        "fetch it again",
    ),
}


def recognise(path: Path) -> Format:
    """Return the format of a file.

    Raises DataError if the format is not known, the file is empty, or breaks off too early.
    """
    if path.is_dir():
        if not is_zarr(path):
            raise DataError(
                f"{path}: expected a file or a zarr store, found a folder; give the files in it"
            )
        return Format.CFZARR
    head = read_bytes(path, HEAD_BYTES)
    if not head:
        raise DataError(f"{path}: the file is empty; {WHOLE}")
    for format, matches in SIGNATURES.items():
        if matches(head):
            return format
    if head.startswith(HDF5):
        return _recognise_hdf5(path)
    if head.startswith(NETCDF3):
        return _recognise_netcdf3(path)
    for name, (signature, advice) in OTHERS.items():
        if signature.match(head):
            raise DataError(
                f"{path}: expected a radar file ({', '.join(Format)}), found {name}; {advice}"
            )
    raise DataError(
        f"{path}: expected a radar file ({', '.join(Format)}), found one that starts with "
        f"{head[:12]!r}; give files of one of these formats"
    )


def _recognise_hdf5(path: Path) -> Format:
    with foreign_file(path, "HDF5") as unpacked, h5py.File(unpacked, "r") as file:
        conventions = text(file, "Conventions")
        names = {text_of(name) for name in file}
        # Some exporters leave the Conventions of the file that the volume was read from.
        stated = conventions.startswith("ODIM_H5") and not _sweep_groups(names)
        if stated or ("what" in file and "dataset1" in file):
            kind = text(file["what"], "object") if "what" in file else "nothing"
            if kind not in ODIM_OBJECTS:
                raise DataError(
                    f"{path}: expected an ODIM_H5 object {', '.join(ODIM_OBJECTS)}, found {kind!r}"
                    "; give files of one of these objects"
                )
            return ODIM_OBJECTS[kind]
        if "overview" in file and "image1" in file and "geographic" in file:
            return Format.KNMI
        if "scan0" in file and "how" in file["scan0"]:
            return Format.GAMIC
        if GPM_GROUP in file and {"lat", "lon"} <= set(file[GPM_GROUP]):
            return Format.CFNETCDF
    return _netcdf_kind(conventions, names, path)


def _recognise_netcdf3(path: Path) -> Format:
    from scipy.io import netcdf_file

    with foreign_file(path, "netCDF") as unpacked, netcdf_file(unpacked, "r", mmap=False) as file:
        conventions = text_of(getattr(file, "Conventions", b""))
        names = {text_of(name) for name in file.variables}
    return _netcdf_kind(conventions, names, path)


def _sweep_groups(names: set[str]) -> bool:
    return any(re.fullmatch(r"sweep_\d+", name) for name in names)


def _netcdf_kind(conventions: str, names: set[str], path: Path) -> Format:
    if "sweep_start_ray_index" in names:
        return Format.CFRADIAL
    if _sweep_groups(names):
        return Format.CFRADIAL2
    if "radial" in conventions.lower():
        raise DataError(
            f"{path}: expected CfRadial 1 or 2, found Conventions {conventions!r} without "
            "sweep_start_ray_index and without groups sweep_1 ...; export the volume again"
        )
    if "CF-" in conventions or {"x", "y"} <= names:
        return Format.CFNETCDF
    raise DataError(
        f"{path}: expected a file of ODIM_H5, CfRadial, GAMIC, KNMI or CF rain, found one with "
        f"{', '.join(sorted(names)[:6]) or 'nothing in it'}; convert it to one of these"
    )
