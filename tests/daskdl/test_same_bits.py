"""Results have the same bits on any processor with AVX2 and FMA, with any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite.binding import get_host_cpu_features

from daskdl.compat.numba_compiler import has_same
from daskdl.kernels.runtime import mkl

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not has_same() or mkl.library() is not None,
    reason="this processor lacks AVX2 or FMA, or MKL multiplies",
)
#: Settings with which BLAS, numba and numpy take the processor for one of 2013.
OLDER = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "x86-64-v3",
    "NUMBA_CPU_FEATURES": "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}


def digests(*arguments: str, **environment: str) -> dict[str, dict[str, str]]:
    """Return, by the number of threads, the digest of each name."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.daskdl.digests", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment, cwd=ROOT, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    by_threads: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        threads, name, digest = line.split("\t")
        by_threads.setdefault(threads, {})[name] = digest
    return by_threads


def differing(expected: dict[str, str], actual: dict[str, str]) -> list[str]:
    assert expected.keys() == actual.keys()
    return [name for name in expected if expected[name] != actual[name]]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        # A product, a reduction, an elementary function of numpy's, a convolution in inference.
        pytest.param(
            ("layers", "networks"), ("Linear wide", "Softmax wide", "Power", "few channels"),
            marks=pytest.mark.slow,
        ),
        # Places in a table, distances between words, and angles with near words.
        pytest.param(
            ("networks",), ("encoder absolute", "encoder relative", "encoder rotary"),
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_one_of_each_reason_on_an_older_processor(
    kinds: tuple[str, ...], names: tuple[str, ...]
) -> None:
    only = "--kinds", *kinds, "--only", *names
    here, older = digests("1", "2", *only), digests("1", *only, **OLDER)
    assert set(here["1"]) == set(names)
    assert differing(here["1"], here["2"]) == differing(here["1"], older["1"]) == []


@pytest.mark.long
def test_int8_layers_on_an_older_processor() -> None:
    """By VPDPBUSD, and by 16-bit pairs of AVX2."""
    only = "--kinds", "layers", "--only", "Int8Conv2d", "Int8Linear"
    here = digests("1", *only)["1"]
    assert len(here) == 2
    assert differing(here, digests("1", *only, **OLDER)["1"]) == []


@pytest.mark.long
def test_int8_on_processors_without_vnni() -> None:
    """Scales and predictions, by VPDPBUSD, by 16-bit pairs of AVX-512, and by pairs of AVX2."""
    only = "--kinds", "networks", "--only", "int8"
    here = digests("1", "2", *only)
    features = {name for name, has in get_host_cpu_features().items() if has}
    without = ",".join(f"+{name}" for name in sorted(features - {"avx512vnni", "avxvnni"}))
    name = {"NUMBA_CPU_NAME": "x86-64-v3"}
    for other in (OLDER, {**name, "NUMBA_CPU_FEATURES": without}):
        assert differing(here["1"], digests("1", *only, **other)["1"]) == []
    assert differing(here["1"], here["2"]) == []


orders = pytest.mark.parametrize("order", ["bf16-pairs", "bf16-tiles"])


@pytest.mark.long
@orders
def test_bfloat16_by_the_instruction_and_without_it(order: str) -> None:
    """All products of an affine map and of a convolution."""
    names = "Linear wide", "Conv2d strided"
    only = "--precision", order, "--kinds", "layers", "--only", *names
    here, older = digests("1", "2", *only), digests("1", *only, **OLDER)
    assert set(here["1"]) == set(names)
    assert differing(here["1"], here["2"]) == []
    assert differing(here["1"], older["1"]) == []
    assert len(differing(here["1"], digests("1", *only[2:])["1"])) == len(names)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("order", [None, "bf16-pairs", "bf16-tiles"])
def test_all_layers_losses_and_networks(order: str | None) -> None:
    """With one to three threads, here and on an older processor; losses are not in bfloat16."""
    only = ("--precision", order, "--kinds", "layers", "networks") if order else ()
    here, older = digests("1", "2", "3", *only), digests("1", "2", *only, **OLDER)
    assert order or len(here["1"]) > 180
    for actual in (here["2"], here["3"], older["1"], older["2"]):
        assert differing(here["1"], actual) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES"])
def test_networks_where_one_library_alone_is_older(name: str) -> None:
    here = digests("1", "--kinds", "networks")
    older = digests("1", "--kinds", "networks", **{name: OLDER[name]})
    assert differing(here["1"], older["1"]) == []
