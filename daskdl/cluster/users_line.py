"""The line of a user's own code in which an exception was raised, for its message."""

from __future__ import annotations

import linecache
import site
import sys
import sysconfig
import traceback
from functools import cache
from pathlib import Path
from types import CodeType


def users_line(error: BaseException) -> str:
    """Return the innermost line that is no library's, as in `` (net.py, line 7, in forward: ...)``.

    Nothing if there is none among the frames that the exception has come through.
    """
    found = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if not _is_librarys(code):
            line = linecache.getline(code.co_filename, number, frame.f_globals).strip()
            where = f"{Path(code.co_filename).name}, line {number}, in {code.co_name}"
            found = f" ({where}: {line})" if line else f" ({where})"
    return found


@cache
def _roots() -> tuple[str, ...]:
    own = str(Path(__file__).parent.parent)
    paths = sysconfig.get_paths()
    held = [own, paths["stdlib"], paths["purelib"], paths["platlib"], *site.getsitepackages()]
    return tuple({str(Path(path)) + "/" for path in held} | {sys.prefix + "/lib/"})


def _is_librarys(code: CodeType) -> bool:
    name = code.co_filename
    notebook = "ipykernel" in name  # where a cell's code lies in a file of its own
    return not notebook and (name.startswith("<frozen") or name.startswith(_roots()))
