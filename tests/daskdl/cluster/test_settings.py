from __future__ import annotations

import datetime

import dask
import pytest

from daskdl.cluster.settings import n_bytes, seconds, setting
from daskdl.errors import SettingsError


def test_every_default_is_of_its_kind() -> None:
    kinds = {"attempts": setting, "threads": setting, "bucket-size": n_bytes}
    for name in dask.config.get("daskdl"):
        kinds.get(name, seconds)(name)


def test_what_the_user_sets_rules() -> None:
    with dask.config.set({"daskdl.group-time": "90 ms", "daskdl.threads": 3}):
        assert seconds("group-time") == 0.09
        assert setting("threads") == 3
    with dask.config.set({"daskdl.group-time": 5}):
        assert seconds("group-time") == 5
    with dask.config.set({"daskdl.group-time": datetime.timedelta(minutes=2)}):
        assert seconds("group-time") == 120
    assert seconds("group-time") == 8
    assert n_bytes("bucket-size") == 0
    with dask.config.set({"daskdl.bucket-size": "4 MiB"}):
        assert n_bytes("bucket-size") == 4 << 20
    assert setting("threads") is None


@pytest.mark.parametrize("value", ["soon", "5 parsecs", "", None, -1, [1]])
def test_what_is_no_duration_is_refused(value: object) -> None:
    with (
        dask.config.set({"daskdl.stall-timeout": value}),
        pytest.raises(SettingsError) as raised,
    ):
        seconds("stall-timeout")
    assert str(raised.value) == (
        "dask.config daskdl.stall-timeout: expected a duration such as '5 minutes', "
        f"found {value!r}; set it in Dask's configuration"
    )


@pytest.mark.parametrize("value", ["two", 0, -1, 1.5, True, None])
def test_what_is_no_number_is_refused(value: object) -> None:
    with (
        dask.config.set({"daskdl.attempts": value}),
        pytest.raises(SettingsError, match=r"daskdl\.attempts: expected a whole number .* found"),
    ):
        setting("attempts")
