"""For all tests: hypothesis' settings, the folder of radar data, and ``--left-out``."""

from __future__ import annotations

import ast
import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# The same draws in every run, so that a test fails only by a change of code. For new draws:
# HYPOTHESIS_PROFILE=search pytest ... No deadline, since numba compiles inside the first example.
settings.register_profile("same", deadline=None, max_examples=16, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=25)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# Until 3.11.8 and 3.12.2, Python counts the depth of all syntax trees in one place: a thread that
# formats a traceback while pytest parses a test's source ends the whole process of tests.
_parse, _parsing = ast.parse, threading.RLock()


def _parse_alone(*args: Any, **kwargs: Any) -> ast.AST:
    with _parsing:
        collecting = gc.isenabled()
        gc.disable()  # a finalizer may format a traceback in this very thread
        try:
            return _parse(*args, **kwargs)
        finally:
            if collecting:
                gc.enable()


if sys.version_info < (3, 12, 2):
    ast.parse = _parse_alone

#: The key of pytest's cache for the ids of the tests that have run.
RAN = "daskdl/ran"
RADAR_DIR = Path(__file__).resolve().parents[2] / "shared" / "radar"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--left-out",
        action="store_true",
        help="run the tests that the last run left out, by a mark or for want of a package",
    )


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Three processes for two cores: tests that start processes wait a third of the time."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return (len(os.sched_getaffinity(0)) * 3 + 1) // 2


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Record(config), "daskdl-record")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--left-out") and config.cache is not None:
        ran = set(config.cache.get(RAN, []))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in ran])
        items[:] = [item for item in items if item.nodeid not in ran]


def pytest_collection_finish() -> None:
    """Let garbage collections be fewer and skip all modules: a tenth of the time of compiling."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


class _Record:
    """Keep the ids of the tests that ran, so that another run can take the others."""

    def __init__(self, config: pytest.Config) -> None:
        self.cache = config.cache
        # These two options continue the record of the previous run.
        continues = config.getoption("--left-out") or config.getoption("--last-failed")
        self.ran = set(self.cache.get(RAN, [])) if self.cache and continues else set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        skipped = report.skipped and not hasattr(report, "wasxfail")
        if report.failed or (report.when == "call" and not skipped):
            self.ran.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        if self.cache is not None:
            self.cache.set(RAN, sorted(self.ran))


@pytest.fixture(scope="session")
def radar_dir() -> Path:
    """Folder of published radar files next to the checkout; the test is skipped without it."""
    if not RADAR_DIR.is_dir():
        pytest.skip(f"no radar data at {RADAR_DIR}")
    return RADAR_DIR


@pytest.fixture(autouse=True)
def _dask_is_left_as_it_was() -> Iterator[None]:
    """A default scheduler that a test leaves behind would fail whatever test comes next."""
    config = sys.modules.get("dask.config")
    before = None if config is None else config.get("scheduler", None)
    yield
    config = sys.modules.get("dask.config")
    assert config is None or config.get("scheduler", None) == before


@pytest.fixture(autouse=True)
def _warnings_are_heard(caplog: pytest.LogCaptureFixture) -> None:
    """A local cluster silences the handlers of Dask's logger, and pytest's may be one of them."""
    caplog.handler.setLevel(0)
