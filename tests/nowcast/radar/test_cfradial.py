"""CfRadial 1, as xradar itself exports it from another volume."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nowcast.radar.header import Format
from nowcast.radar.reader import read_header
from nowcast.radar.volume import read_sweeps

# Its sweeps rise in time; of a volume that is scanned downwards the exporter mixes the sweeps up.
NAME = "T_PAGZ35_C_ENMI_20170421090837.hdf"


@pytest.fixture(scope="module")
def exported(polar, tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import xradar

        path = tmp_path_factory.mktemp("cfradial") / "volume.nc"
        tree = xradar.io.open_odim_datatree(polar / NAME, sweep=["sweep_0", "sweep_1"])
        xradar.io.to_cfradial1(tree.load(), str(path), calibs=False)
        tree.close()
    return path


def test_it_reads_as_what_it_was_exported_from(exported, polar):
    header = read_header(exported)
    assert header.format is Format.CFRADIAL
    assert header.site.latitude == pytest.approx(67.5307)
    (sweep,) = read_sweeps([exported], Format.CFRADIAL)
    (origin,) = read_sweeps([polar / NAME], Format.ODIM)
    assert sweep.elevation == pytest.approx(origin.elevation)
    np.testing.assert_allclose(sweep.azimuth, origin.azimuth, atol=1e-3)
    np.testing.assert_array_equal(sweep.dbz, origin.dbz)


def test_a_truncated_file_is_an_error(exported, tmp_path):
    from daskdl.errors import DataError

    content = exported.read_bytes()
    path = tmp_path / "cut.nc"
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=r"cut\.nc: damaged or truncated"):
        read_header(path)
