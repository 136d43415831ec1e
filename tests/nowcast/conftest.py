"""Fixtures of the tests of nowcast: paths of real radar files, and a clean log for each test."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(scope="session")
def polar(radar_dir):
    """Folder with single polar files."""
    return radar_dir / "polar"


@pytest.fixture(scope="session")
def helchteren(radar_dir):
    """Eight volumes of reflectivity, five minutes apart."""
    return sorted((radar_dir / "polar_sequence").glob("*.dbzh.*"))


@pytest.fixture(autouse=True)
def _log_of_one_test():
    """Remove the handlers that a command leaves: the next test has another standard error."""
    log = logging.getLogger("nowcast")
    handlers, level, propagate = log.handlers[:], log.level, log.propagate
    yield
    for handler in {*log.handlers} - {*handlers}:
        handler.close()
    log.handlers[:], log.level, log.propagate = handlers, level, propagate
