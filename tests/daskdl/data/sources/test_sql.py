"""Tables of a real PostgreSQL on the loopback interface, started for this file alone."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.data.sources import sql as module
from daskdl.data.sources.sql import from_table
from daskdl.errors import DataError, SettingsError
from tests.daskdl.data.epochs import all_of
from tests.daskdl.data.sources.postgres import PASSWORD, Server

psycopg = pytest.importorskip("psycopg")

ROWS = 1000


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Connection string, without a password, of a server with the table `pixels`."""
    with Server() as running:
        with psycopg.connect(running.connection, password=PASSWORD) as connected:
            fill(connected)
        yield running.connection


def fill(connection) -> None:
    connection.execute(
        "CREATE TABLE pixels (id bigint PRIMARY KEY, image bytea, label smallint, score real,"
        " price numeric, name text, tags integer[], twice integer)"
    )
    with connection.cursor().copy("COPY pixels FROM STDIN") as copy:
        for i in range(ROWS):
            image = bytes([i % 251] * 12)
            score = None if i == 3 else i / 8
            tags = list(range(i % 3))
            name = f"row {i}"
            copy.write_row((7 * i, image, i % 10, score, i / 4, name, tags, i // 2))


def samples_of(server, **options):
    options = {"x": "image", "y": "label", "partitions": 3, **options}
    return from_table(server, "pixels", key="id", password=PASSWORD, **options)


def labels_of(server, table, key="id", partitions=2):
    return from_table(server, table, key=key, x="label", password=PASSWORD, partitions=partitions)


@pytest.fixture
def changing(server) -> Iterator[psycopg.Connection]:
    """Connect to the server while it has a table `other`, and a view `seen` of it."""
    with psycopg.connect(server, password=PASSWORD, autocommit=True) as connection:
        connection.execute("CREATE TABLE other AS SELECT id, label FROM pixels WHERE id < 700")
        connection.execute("CREATE VIEW seen AS SELECT * FROM other")
        try:
            yield connection
        finally:
            connection.execute("DROP TABLE other CASCADE")


def decoded(data):
    return np.frombuffer(data, np.uint8).reshape(2, 2, 3)


@pytest.mark.slow
def test_rows_become_samples_in_the_order_of_the_key(server):
    samples = samples_of(server, decode={"x": decoded})
    assert samples.lengths == (334, 333, 333)
    batch = all_of(samples)
    assert batch["x"].shape == (ROWS, 2, 2, 3)
    np.testing.assert_array_equal(batch["x"][:, 0, 0, 0], np.arange(ROWS) % 251)
    np.testing.assert_array_equal(batch["y"], np.arange(ROWS) % 10)
    assert batch["y"].dtype == np.int16
    assert 14 * ROWS <= samples.nbytes < 40 * ROWS


def test_columns_keep_their_types(server):
    fields = {"score": "score", "price": "price", "name": "name", "tags": "tags", "raw": "image"}
    batch = all_of(samples_of(server, x=["label", "twice"], y="twice", **fields))
    numbers = np.arange(ROWS)
    np.testing.assert_array_equal(batch["x"], np.stack([numbers % 10, numbers // 2], 1))
    np.testing.assert_array_equal(batch["score"], np.where(numbers == 3, np.nan, numbers / 8))
    assert batch["score"].dtype == np.float32
    np.testing.assert_array_equal(batch["price"], numbers / 4)
    assert batch["name"][5] == "row 5"
    np.testing.assert_array_equal(batch["tags"].lengths, numbers % 3)
    assert batch["raw"][9] == bytes([9] * 12)


@pytest.mark.parametrize("partitions", [1, 4])
def test_parts_and_other_cuts_read_the_same_rows(server, partitions):
    samples = samples_of(server, x="id", partitions=partitions)
    assert samples.partitions == partitions
    for cut in (samples, samples.repartition(3)):
        np.testing.assert_array_equal(all_of(cut)["x"], 7 * np.arange(ROWS))


def test_a_condition(server):
    samples = samples_of(server, x="id", where="label = 4 OR name = 'row 1'")
    np.testing.assert_array_equal(
        all_of(samples)["x"], [7, *(7 * i for i in range(ROWS) if i % 10 == 4)]
    )


def test_partitions_by_bytes(server, monkeypatch):
    monkeypatch.setattr(module, "PARTITION_BYTES", 14 * 400)
    samples = samples_of(server, partitions=None)
    assert samples.lengths == (400, 400, 200)
    np.testing.assert_array_equal(all_of(samples)["y"], np.arange(ROWS) % 10)


def test_a_pickled_partition_reads_its_rows(server):
    samples = pickle.loads(pickle.dumps(samples_of(server).recipes[1]))
    assert len(samples.load()) == 333


def test_enumerations_are_texts_and_gaps_in_arrays_are_nan(changing, server):
    changing.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    try:
        changing.execute(
            "CREATE TABLE odd AS SELECT i AS id, 'ok'::mood AS e, i::numeric::money AS m,"
            " ARRAY[i, NULL] AS gaps, ARRAY[i / 2.0, 1] AS halves FROM generate_series(0, 3) i"
        )
        fields = {name: name for name in ("id", "e", "m", "gaps", "halves")}
        batch = from_table(server, "odd", key="id", password=PASSWORD, **fields).head(2)
    finally:
        changing.execute("DROP TABLE IF EXISTS odd; DROP TYPE mood")
    assert batch["id"].tolist() == [0, 1]
    assert batch["e"].tolist() == ["ok", "ok"]
    assert batch["m"].tolist() == ["$0.00", "$1.00"]
    np.testing.assert_array_equal(batch["gaps"], [[0, np.nan], [1, np.nan]])
    np.testing.assert_array_equal(batch["halves"], [[0, 1], [0.5, 1]])


def test_the_password_is_nowhere_to_be_seen(server, caplog):
    caplog.set_level(logging.DEBUG)
    samples = samples_of(server)
    inside = server.replace("reader@", f"reader:{PASSWORD.replace(' ', '%20')}@")
    other = from_table(inside, "pixels", key="id", x="label", partitions=2)
    np.testing.assert_array_equal(other.head(3)["x"], [0, 1, 2])
    shown = [repr(s.recipes[0]) + str(s.recipes[0].table) + repr(s) for s in (samples, other)]
    shown.append(repr(pickle.loads(pickle.dumps(other.recipes[0]))))
    for connection, table, password in [
        (server, "absent", PASSWORD),
        (server, "pixels", "wrong"),
        (server, "pixels", "absent"),
        (f"host=127.0.0.1 pass word={PASSWORD}", "pixels", None),
        (inside.replace("/postgres", f"/{PASSWORD}"), "pixels", None),
    ]:
        with pytest.raises((DataError, SettingsError)) as caught:
            from_table(connection, table, key="id", x="label", password=password)
        assert caught.value.__cause__ is None
        shown.append(str(caught.value))
    assert "authentication failed" in " ".join(shown)
    for text in (*shown, caplog.text):
        assert "sesame" not in text


def test_missing_tables_columns_and_rows_are_named(server):
    with pytest.raises(DataError, match=r'absent: expected to read it .* "absent" does not exist'):
        labels_of(server, "absent")
    with pytest.raises(DataError, match=r'UndefinedColumn: column "colour" does not exist'):
        samples_of(server, x="colour")
    with pytest.raises(DataError, match=r"pixels: expected rows, found none label > 90"):
        samples_of(server, where="label > 90")
    with pytest.raises(DataError, match=r"at host=127.0.0.1 port=1, found OperationalError"):
        from_table("host=127.0.0.1 port=1", "pixels", key="id", x="label")
    with pytest.raises(SettingsError, match="partitions: expected at least 1, found 0"):
        samples_of(server, partitions=0)


@pytest.mark.parametrize("partitions", [1, 3, 500])
def test_refuses_a_key_that_is_no_key(server, partitions):
    for key in ("twice", "score"):
        with pytest.raises(DataError, match=f"expected '{key}' to have a different value"):
            labels_of(server, "pixels", key, partitions)


def test_notices_that_the_table_has_changed(server, changing):
    samples = labels_of(server, "other")
    changing.execute("DELETE FROM other WHERE id = 7")
    with pytest.raises(DataError, match=r"id from 0 to 343: expected 50 .* found 49"):
        samples.recipes[0].load()
    changing.execute("INSERT INTO other VALUES (351, 1)")
    with pytest.raises(DataError, match=r"expected 50 rows .* found more; the table has"):
        samples.recipes[1].load()


@pytest.mark.parametrize("change", ["UPDATE other SET label = 5 WHERE id = 7", ""])
def test_notices_that_rows_were_replaced_by_as_many(server, changing, change):
    samples, seen = (labels_of(server, name) for name in ("other", "seen"))
    first = samples.recipes[0].version
    if change:
        changing.execute(change)
    else:
        with changing.transaction():
            changing.execute("DELETE FROM other WHERE id = 7")
            changing.execute("INSERT INTO other VALUES (8, 1)")
    with pytest.raises(DataError, match=r"343: expected the 50 rows .* written since"):
        samples.recipes[0].load()
    with pytest.raises(DataError, match="written since"):
        samples.repartition(9).recipes[1].load()
    assert len(samples.recipes[1].load()) == 50  # none of its rows was written
    assert len(seen.recipes[0].load()) == 50  # a view has only its rows counted
    assert seen.recipes[0].version == ""
    anew = labels_of(server, "other").recipes[0]
    assert len(anew.load()) == 50
    assert anew.version != first


def test_bad_records_are_left_out_and_named(server):
    def only_even(data):
        if data[0] % 2:
            raise ValueError("odd")
        return decoded(data)

    with pytest.raises(DataError, match="odd"):
        samples_of(server, decode={"x": only_even}).recipes[0].load()
    samples = samples_of(server, decode={"x": only_even}, on_error="skip")
    assert len(samples) == sum(i % 251 % 2 == 0 for i in range(ROWS))
    assert isinstance(samples, SampleSet)
