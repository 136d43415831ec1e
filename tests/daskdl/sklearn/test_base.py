"""Base: without scikit-learn there is one sentence."""

from __future__ import annotations

import subprocess
import sys


def test_without_scikit_learn_there_is_one_sentence() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import daskdl.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip().splitlines()[-1] == (
        "daskdl.errors.MissingExtraError: daskdl.sklearn needs scikit-learn from 1.6 on, which is "
        "not installed: pip install 'daskdl[sklearn]'."
    )
