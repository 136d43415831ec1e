"""The ODIM_H5 writer, read back by h5py and by xradar."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from numpy.typing import NDArray

from nowcast.simulate.odim import (
    GAIN,
    NODATA,
    OFFSET,
    UNDETECT,
    PolarSweep,
    quantise,
    write_odim_volume,
)

TIME = datetime(2021, 3, 4, 23, 59, 50)


def dbz(seed: int = 0) -> NDArray[np.float64]:
    values = np.random.default_rng(seed).uniform(-31, 70, (36, 25))
    values[3, 4:9] = -np.inf
    values[7] = np.nan
    return values


def write(path: Path, *fields: NDArray[np.floating]) -> Path:
    sweeps = [
        PolarSweep(0.5 + k, TIME + timedelta(seconds=20 * k), 20.0, 500.0, field)
        for k, field in enumerate(fields)
    ]
    write_odim_volume(
        path,
        sweeps,
        time=TIME,
        site=(51.5, 4.25, 33.0),
        source="PLC:Nowhere,CMT:simulated data",
        how={"simulated": "True", "beamwidth": 1.0, "startepochs": 5},
    )
    return path


def open_sweep(path: Path, number: int = 0) -> xr.Dataset:
    import xradar

    with xradar.io.open_odim_datatree(path) as tree:
        return tree[f"sweep_{number}"].to_dataset(inherit="all_coords").load()


def test_xradar_reads_the_written_fields(tmp_path):
    fields = dbz(0), dbz(1)
    path = write(tmp_path / "volume.h5", *fields)
    for number, field in enumerate(fields):
        sweep = open_sweep(path, number)
        assert float(sweep["latitude"]) == 51.5
        assert float(sweep["longitude"]) == 4.25
        assert float(sweep["altitude"]) == 33.0
        assert float(sweep["sweep_fixed_angle"]) == 0.5 + number
        np.testing.assert_allclose(sweep["elevation"], 0.5 + number)
        np.testing.assert_allclose(sweep["azimuth"], 10.0 * np.arange(36) + 5.0)
        np.testing.assert_allclose(sweep["range"], 500.0 * np.arange(25) + 250.0)
        start = np.datetime64(TIME, "ms") + np.timedelta64(20 * number, "s")
        times = (sweep["time"].values - start) / np.timedelta64(1, "s")
        np.testing.assert_allclose(times, 20.0 * (np.arange(36) + 0.5) / 36, atol=2e-3)
        read, heard = sweep["DBZH"].values, np.isfinite(field)
        assert np.abs(read[heard] - field[heard]).max() <= GAIN / 2 + 1e-6
        # xradar reads no echo as a number, and missing as NaN.
        np.testing.assert_allclose(read[np.isneginf(field)], OFFSET)
        np.testing.assert_array_equal(np.isnan(read), np.isnan(field))


def test_attributes_have_the_types_of_odim(tmp_path):
    attributes: dict[str, h5py.h5a.AttrID] = {}
    with h5py.File(write(tmp_path / "volume.h5", dbz(), dbz()), "r") as file:

        def visit(name, item):
            for key in item.attrs:
                attributes[f"/{name}/{key}"] = h5py.h5a.open(item.id, key.encode())

        visit("", file["/"])
        file.visititems(visit)
        for name, attribute in attributes.items():
            kind = attribute.get_type()
            if isinstance(kind, h5py.h5t.TypeStringID):
                assert not kind.is_variable_str(), name
                assert kind.get_strpad() == h5py.h5t.STR_NULLTERM, name
                assert kind.get_cset() == h5py.h5t.CSET_ASCII, name
            else:
                assert attribute.dtype in (np.int64, np.float64), name
        wanted = {
            "/": "/Conventions",
            "/what": "object version date time source",
            "/where": "lon lat height",
            "/how": "simulated beamwidth",
            "/dataset2/what": "product startdate starttime enddate endtime",
            "/dataset2/where": "elangle nbins rstart rscale nrays a1gate",
            "/dataset2/how": "startazA stopazA startazT stopazT elangles scan_index scan_count NI",
            "/dataset2/data1/what": "quantity gain offset nodata undetect",
            "/dataset2/data1/data": "CLASS IMAGE_VERSION",
        }
        for group, names in wanted.items():
            for name in names.split():
                assert f"{group}/{name}".replace("///", "//") in attributes, f"{group}/{name}"
        assert file.attrs["Conventions"] == b"ODIM_H5/V2_3"
        assert file["what"].attrs["object"] == b"PVOL"
        assert file["what"].attrs["version"] == b"H5rad 2.3"
        assert file["how"].attrs["simulated"] == b"True"
        assert file["dataset2/what"].attrs["startdate"] == b"20210305"
        assert file["dataset2/what"].attrs["starttime"] == b"000010"
        assert file["dataset1/data1/data"].dtype == np.uint8


def test_quantise_keeps_the_three_kinds_apart():
    values = np.array([-np.inf, np.nan, -100.0, OFFSET, -31.5, 0.2, 94.5, 500.0])
    expected = [UNDETECT, NODATA, 1, 1, 1, 64, 253, NODATA - 1]
    assert quantise(values).tolist() == expected


def test_same_data_gives_the_same_bytes_over_an_older_file(tmp_path):
    first = write(tmp_path / "a.h5", dbz()).read_bytes()
    (tmp_path / "b.h5").write_bytes(b"something older")
    assert write(tmp_path / "b.h5", dbz()).read_bytes() == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.h5", "b.h5"]


def test_a_failed_write_leaves_the_old_volume(tmp_path):
    write(tmp_path / "volume.h5", dbz())
    before = (tmp_path / "volume.h5").read_bytes()
    with pytest.raises(ValueError, match="unpack"):
        write(tmp_path / "volume.h5", dbz(), np.zeros(5))
    assert (tmp_path / "volume.h5").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["volume.h5"]
