"""Ingest: real archives to stores, appended, repeated, late, damaged, and refused."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from daskdl.cluster import bounded as tasks
from daskdl.errors import DataError, SettingsError
from nowcast.ingest.ingest import ingest
from nowcast.radar import guard, isolated
from nowcast.radar.polar import odim
from nowcast.rain.grid import Grid
from nowcast.rain.store import open_rain, time_step
from tests.daskdl.clusters import small_client
from tests.nowcast.radar.fuzz import mutants
from tests.nowcast.radar.odim_file import write_cfradial, write_sweep

SMALL = {"size": 40, "spacing": 1000.0}


@pytest.fixture(scope="module")
def client():
    with small_client(threads_per_worker=2) as client:
        yield client


def minutes(store) -> list[int]:
    with open_rain(store) as dataset:
        start = np.datetime64("2020-02-07T13:00", "ns")
        return ((dataset["time"].values - start) / np.timedelta64(1, "m")).astype(int).tolist()


def write_series(folder, *times: int):
    folder.mkdir(exist_ok=True)
    for minute in times:
        write_sweep(folder / f"{minute:02d}.h5", f"13{minute:02d}04")
    return folder


@pytest.mark.slow
def test_helchteren_is_one_series_of_five_minutes(radar_dir, tmp_path, client):
    store = tmp_path / "rain.zarr"
    seen = []
    report = ingest(
        [radar_dir / "polar_sequence"],
        store,
        client=client,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert (report.written, report.existing, report.failed) == (8, 0, [])
    assert report.ignored == 1
    assert seen == [(i, 8) for i in range(1, 9)]
    with open_rain(store) as dataset:
        assert time_step(dataset) == np.timedelta64(5, "m")
        assert minutes(store) == list(range(0, 40, 5))
        rain = dataset["rain_rate"]
        assert rain.shape == (8, 256, 256)
        assert not np.isnan(rain.values).any()
        assert 0.001 < (rain.values > 0.1).mean() < 0.1
        assert rain.attrs["zr_relation"].startswith("Z = 200 R^1.6 (marshall-palmer), hail cap 53")
        assert rain.attrs["cleaning"] == "texture spikes speckle second_trip"
        assert rain.attrs["cell_methods"] == "time: point"
        assert dataset.attrs["station"] == "06475"
    again = ingest([radar_dir / "polar_sequence"], store, client=client)
    assert (again.written, again.existing) == (0, 8)


@pytest.mark.slow
def test_single_sweep_files_are_two_volumes(polar, tmp_path, client):
    report = ingest([str(polar / "T_PAZ*")], tmp_path / "rain.zarr", client=client, size=64)
    assert (report.written, report.failed) == (2, [])
    with open_rain(tmp_path / "rain.zarr") as dataset:
        assert [str(time)[11:16] for time in dataset["time"].values] == ["06:50", "06:55"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "count", "step", "shape", "strongest"),
    [
        ("knmi/2010/08/*201008260[0-1]*", 24, 5, (765, 700), 9.96),
        ("bom/prcp-c10/66/2020/10/31/*_05*", 6, 10, (512, 512), 91.5),
        ("fmi/20160928/*20160928174*", 2, 5, (1226, 760), 60.34),
    ],
)
def test_composites_keep_their_grid(
    radar_dir, tmp_path, client, folder, count, step, shape, strongest
):
    report = ingest([str(radar_dir / folder)], tmp_path / "rain.zarr", client=client)
    assert (report.written, report.failed) == (count, [])
    with open_rain(tmp_path / "rain.zarr") as dataset:
        assert time_step(dataset) == np.timedelta64(step, "m")
        assert dataset["rain_rate"].shape == (count, *shape)
        assert float(dataset["rain_rate"].max()) == pytest.approx(strongest, rel=1e-3)
        methods = dataset["rain_rate"].attrs["cell_methods"]
        accumulated = f"time: mean (interval: {step} minutes)"
        assert methods == ("time: point" if "fmi" in folder else accumulated)


@pytest.mark.long  # more files for the readers and steps of test_composites_keep_their_grid
@pytest.mark.parametrize(
    ("folder", "count", "step"), [("knmi", 92, 5), ("bom", 144, 10), ("fmi", 40, 5)]
)
def test_whole_archives(radar_dir, tmp_path, folder, count, step):
    report = ingest([radar_dir / folder], tmp_path / "rain.zarr")
    assert (report.written, report.failed) == (count, [])
    with open_rain(tmp_path / "rain.zarr") as dataset:
        assert set(np.diff(dataset["time"].values)) == {np.timedelta64(step, "m")}
        assert float(dataset["rain_rate"].min()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("bytes_for_processes", [0, 10**12], ids=["processes", "thread"])
def test_ingest_starts_a_cluster_when_none_is_given(tmp_path, monkeypatch, bytes_for_processes):
    monkeypatch.setattr(tasks, "BYTES_FOR_PROCESSES", bytes_for_processes)
    folder = write_series(tmp_path / "scans", 0, 5)
    report = ingest([folder], tmp_path / "rain.zarr", **SMALL)
    assert report.written == 2
    with open_rain(tmp_path / "rain.zarr") as dataset:
        assert float(dataset["rain_rate"].max()) == pytest.approx(2.73, abs=0.01)


@pytest.mark.slow
def test_repeating_reads_nothing_again(tmp_path, client):
    folder = write_series(tmp_path / "scans", 0, 5)
    store = tmp_path / "rain.zarr"
    ingest([folder], store, client=client, **SMALL)
    with open_rain(store) as dataset:
        before = dataset["rain_rate"].values
    # If the scan were read again, its rain would differ.
    write_sweep(folder / "05.h5", "130504", raw=np.full((72, 40), 140, np.uint8))
    report = ingest([folder], store, client=client, **SMALL)
    assert (report.written, report.existing) == (0, 2)
    with open_rain(store) as dataset:
        np.testing.assert_array_equal(dataset["rain_rate"].values, before)


@pytest.mark.parametrize("late", [(0,), (10, 40), (0, 10, 20, 30, 40)])
def test_late_scans_are_put_in_their_place(tmp_path, client, late):
    store = tmp_path / "rain.zarr"
    ingest([write_series(tmp_path / "first", 5, 15, 25)], store, client=client, **SMALL)
    report = ingest([write_series(tmp_path / "late", *late)], store, client=client, **SMALL)
    assert report.written == len(late)
    assert minutes(store) == sorted({5, 15, 25, *late})


@pytest.mark.slow
def test_bad_files_are_named_counted_and_skipped(tmp_path, client, caplog):
    folder = write_series(tmp_path / "scans", 0, 5, 10)
    content = (folder / "05.h5").read_bytes()
    (folder / "05.h5").write_bytes(content[: len(content) // 2])
    (folder / "text.h5").write_text("not radar")
    (folder / "README.md").write_text("about these scans")
    write_sweep(folder / "15.h5", "131504", quantity="RHOHV")
    report = ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    assert report.written == 2
    assert report.ignored == 1
    assert minutes(tmp_path / "rain.zarr") == [0, 10]
    reasons = {name.rsplit("/", 1)[1]: reason for name, reason in report.failed}
    assert set(reasons) == {"05.h5", "15.h5", "text.h5"}
    assert "truncated" in reasons["05.h5"]
    assert reasons["text.h5"].startswith("expected a radar file")
    assert "text.h5: skipped: expected a radar file" in caplog.text
    # A second run reads the repaired file and tries the bad ones.
    (folder / "05.h5").write_bytes(content)
    report = ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    assert (report.written, report.existing, len(report.failed)) == (1, 2, 2)
    assert minutes(tmp_path / "rain.zarr") == [0, 5, 10]


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda folder: (folder / "readme.txt").write_text("x"), "found none .1 other files"),
        (lambda folder: (folder / "a.h5").write_text("x"), r"a\.h5: expected a radar file"),
        (
            lambda folder: [(folder / name).write_text("x") for name in ("a.h5", "b.nc")],
            r"none of 2 files could be read; the first is .*a\.h5",
        ),
        (lambda folder: None, "expected radar scans, found none"),
    ],
    ids=["no radar", "text", "texts", "empty"],
)
def test_nothing_to_read_is_one_sentence_and_no_store(tmp_path, client, prepare, sentence):
    folder = tmp_path / "scans"
    folder.mkdir()
    prepare(folder)
    with pytest.raises(DataError, match=sentence):
        ingest([folder], tmp_path / "rain.zarr", client=client)
    assert [entry.name for entry in tmp_path.iterdir()] == ["scans"]


def test_when_every_scan_fails_there_is_no_store(tmp_path, client):
    folder = write_series(tmp_path / "scans", 0)
    write_sweep(folder / "00.h5", quantity="RHOHV")
    with pytest.raises(DataError, match=r"00\.h5: expected a sweep with reflectivity"):
        ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    assert [entry.name for entry in tmp_path.iterdir()] == ["scans"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"size": 50}, "the store has a grid of 40 x 40 cells.*these sources give 50 x 50"),
        ({"spacing": 500.0}, "these sources give 40 x 40 cells of 500 x 500 m"),
        ({"zr": "wsr88d"}, "made with zr_relation .*this run has 'Z = 300"),
        ({"rhohv": 0.8}, "made with correlation_test"),
        ({"clean": "none"}, "made with cleaning 'texture spikes speckle second_trip'"),
    ],
)
def test_a_store_of_other_settings_is_refused_and_untouched(tmp_path, client, settings, sentence):
    folder = write_series(tmp_path / "scans", 0)
    store = tmp_path / "rain.zarr"
    ingest([folder], store, client=client, **SMALL)
    write_series(folder, 5)
    with pytest.raises(DataError, match=sentence):
        ingest([folder], store, client=client, **(SMALL | settings))
    assert minutes(store) == [0]


def test_a_store_of_another_radar_is_refused(tmp_path, client):
    store = tmp_path / "rain.zarr"
    ingest([write_sweep(tmp_path / "a.h5")], store, client=client, **SMALL)
    other = write_sweep(tmp_path / "b.h5", "130500", source="WMO:06477")
    with pytest.raises(DataError, match="holds rain of '06475', these sources are of '06477'"):
        ingest([other], store, client=client, **SMALL)


@pytest.mark.slow
def test_message_1_needs_a_site(polar, tmp_path, client):
    source = [polar / "KLIX20050828_180149.gz"]
    with pytest.raises(DataError, match="give it with --site"):
        ingest(source, tmp_path / "rain.zarr", client=client)
    ingest(source, tmp_path / "rain.zarr", client=client, site="30.3367,-89.8256,7", **SMALL)
    with open_rain(tmp_path / "rain.zarr") as dataset:
        expected = Grid.around(30.3367, -89.8256, size=(40, 40), spacing=1000.0)
        assert Grid.from_dataset(dataset).matches(expected)


@pytest.mark.slow
def test_a_step_makes_times_regular(tmp_path, client):
    folder = tmp_path / "scans"
    folder.mkdir()
    for name in ("130004", "130412", "131041", "131159"):
        write_sweep(folder / f"{name}.h5", name)
    report = ingest([folder], tmp_path / "rain.zarr", client=client, step="5min", **SMALL)
    assert (report.written, report.repeated) == (3, 1)
    assert minutes(tmp_path / "rain.zarr") == [0, 5, 10]


def test_a_wrong_setting_is_refused_before_anything(tmp_path):
    with pytest.raises(SettingsError, match="ingest, spacing"):
        ingest([tmp_path], tmp_path / "rain.zarr", spacing=-5)
    with pytest.raises(SettingsError, match="a zarr store"):
        ingest([tmp_path], tmp_path / "rain.nc")


@pytest.mark.slow
def test_the_store_may_be_in_the_folder_of_the_files(tmp_path, client):
    folder = write_series(tmp_path / "scans", 0)
    shutil.copy(folder / "00.h5", folder / "copy.h5")
    report = ingest([folder], folder / "rain.zarr", client=client, **SMALL)
    assert report.written == 1
    again = ingest([folder], folder / "rain.zarr", client=client, **SMALL)
    assert (again.written, again.existing, again.failed) == (0, 1, [])


def test_a_bug_in_a_reader_is_reported_and_other_files_are_ingested(tmp_path, client, monkeypatch):
    folder = write_series(tmp_path / "scans", 0, 5, 10)
    read = odim.read_sweeps

    def mistaken(path, cuts, moment):
        sweeps = read(path, cuts, moment)
        return sweeps if path.name != "05.h5" else guard.foreign_file(len(sweeps[0]), "x")

    # The worker is a thread of this process; reading in it lets it call the patched function.
    monkeypatch.setattr(isolated, "call", lambda name, function, *args: function(*args))
    monkeypatch.setattr(odim, "read_sweeps", mistaken)
    monkeypatch.setattr(guard, "OURS", __name__.partition(".")[0])
    report = ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    assert (report.written, report.mistakes) == (2, 1)
    ((name, reason),) = report.failed
    assert name.endswith("05.h5")
    assert "by a mistake of its own (TypeError" in reason
    assert "test_ingest, line" in reason


@pytest.mark.slow
def test_site_and_station_come_from_the_files_that_agree(tmp_path, client, caplog):
    folder = write_series(tmp_path / "scans", *range(0, 55, 5))
    write_sweep(folder / "00.h5", "130004", site=(0.0, 0.0, 0.0))
    write_sweep(folder / "05.h5", "130504", site=(21.0, 5.0, 100.0))
    write_sweep(folder / "50.h5", "135004", source="WMO:99999")
    report = ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    with open_rain(tmp_path / "rain.zarr") as dataset:
        expected = Grid.around(51.0, 5.0, size=(40, 40), spacing=1000.0)
        assert Grid.from_dataset(dataset).matches(expected)
        assert dataset.attrs["station"] == "06475"
        # The first file has no site and is mapped with the site of the others.
        assert float(dataset["rain_rate"][0].max()) == float(dataset["rain_rate"][1].max()) > 1
    reasons = {name.rsplit("/", 1)[1]: reason for name, reason in report.failed}
    assert set(reasons) == {"05.h5", "50.h5"}
    assert "reaches no cell of the grid" in reasons["05.h5"]
    assert "expected a scan of '06475'" in reasons["50.h5"]


@pytest.mark.slow
def test_more_than_half_missing_is_logged(tmp_path, client, caplog):
    raw = np.full((72, 40), 255, np.uint8)
    raw[:30] = 0
    raw[:5, :30] = 140
    ingest([write_sweep(tmp_path / "a.h5", raw=raw)], tmp_path / "a.zarr", client=client, **SMALL)
    assert "57 % of the radar's range is missing" in caplog.text
    caplog.clear()
    report = ingest([write_sweep(tmp_path / "b.h5")], tmp_path / "b.zarr", client=client, **SMALL)
    assert report.coverage.missing + report.coverage.dry + report.coverage.wet == 40 * 40
    assert "missing" not in caplog.text


@pytest.mark.slow
def test_mutants_among_the_files_do_not_end_the_run(tmp_path, client):
    folder = write_series(tmp_path / "scans", *range(0, 60, 5))
    content = (folder / "30.h5").read_bytes()
    for number, mutant in enumerate(mutants(content, 24, seed=3)):
        (folder / f"mutant-{number:02d}.h5").write_bytes(mutant)
    report = ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    assert report.mistakes == 0
    assert 12 <= report.written <= 36 - len(report.failed)
    assert all("mutant" in name for name, _ in report.failed)
    assert set(range(0, 60, 5)) <= set(minutes(tmp_path / "rain.zarr"))


@pytest.mark.slow
def test_a_damaged_file_of_a_scan_leaves_its_other_files(tmp_path, client):
    """Reflectivity and correlation are in two files; the second is damaged."""
    folder = write_series(tmp_path / "scans", 0, 5)
    rhohv = write_sweep(folder / "05rhohv.h5", "130504", quantity="RHOHV")
    content = bytearray(rhohv.read_bytes())
    at = content.index(b"\x78\x5e") if b"\x78\x5e" in content else content.index(b"\x78\x01")
    content[at : at + 8] = bytes(8)  # where the packed values begin
    rhohv.write_bytes(bytes(content))
    report = ingest([folder], tmp_path / "rain.zarr", client=client, **SMALL)
    assert report.written == 2
    ((name, reason),) = report.failed
    assert name.endswith("05rhohv.h5")
    assert "damaged" in reason


@pytest.mark.parametrize("cfradial", [False, True], ids=["no name", "xradar's None"])
def test_radars_without_a_name_are_distinguished_by_their_places(tmp_path, cfradial):
    scans = []
    for number, latitude in enumerate((50.0, 50.2)):
        site = (latitude, 5.0, 9.0)
        scans.append(write_sweep(tmp_path / f"{number}.h5", site=site, source=""))
        if cfradial:
            scans[-1] = write_cfradial(tmp_path / f"{number}.nc", scans[-1])
    with pytest.raises(DataError, match="scans of one radar or one composite, found 2: no name at"):
        ingest(scans, tmp_path / "rain.zarr", size=64)
    report = ingest(scans, tmp_path / "mosaic.zarr", size=64, mosaic="nearest")
    assert report.radars == {"no name at 50.00,5.00": 1, "no name at 50.20,5.00": 1}


def test_two_files_of_one_turn_are_repeated_and_a_scan_without_its_lowest_sweep_is_missing(
    tmp_path, caplog
):
    write_sweep(tmp_path / "a.h5")
    write_sweep(tmp_path / "b.h5")
    write_sweep(tmp_path / "c.h5", "130500", elevations=(8.0,))
    report = ingest(sorted(tmp_path.glob("*.h5")), tmp_path / "rain.zarr", size=(32, 32))
    assert (report.written, report.repeated) == (2, 1)
    assert "b.h5: skipped: another file has its sweeps" in caplog.text
    assert "c.h5: the lowest sweep is at 8 degrees, in scans before it is at 0.5" in caplog.text
    with open_rain(tmp_path / "rain.zarr") as rain:
        missing = np.isnan(rain["rain_rate"].values).all((1, 2))
    assert missing.tolist() == [False, True]
