"""Read pickles as plain data: containers, numbers, text, and the few calls that weights need.

Nothing is imported or called by a name in the file. A class or function becomes an empty class of
that name; its call gives what a table of the few that weights need makes of the arguments.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from typing import IO, Any

from daskdl.errors import DataError
from daskdl.interop.guard import LIBRARIES, reading

#: Makes a value from (module, name, arguments).
Make = Callable[[str, str, tuple[Any, ...]], Any]
#: Opcodes of plain data; others are refused.
_KNOWN = {
    "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING",
    "STRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BININT", "BININT1", "BININT2", "INT",
    "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE", "EMPTY_TUPLE",
    "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "EMPTY_LIST", "LIST", "APPEND", "APPENDS", "EMPTY_DICT",
    "DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "GLOBAL", "STACK_GLOBAL", "REDUCE",
    "NEWOBJ", "BUILD", "BINPERSID", "PROTO", "FRAME", "MARK", "POP", "DUP", "STOP", "PUT", "BINPUT",
    "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET",
}  # fmt: skip
#: Bytes of memory that most opcodes take at most; an opcode can be one byte of a file.
_COST = 100
_COSTS = {
    "BINPUT": 200, "LONG_BINPUT": 200, "PUT": 200, "MEMOIZE": 200, "EMPTY_SET": 300,
    "GLOBAL": 3000, "STACK_GLOBAL": 3000, "REDUCE": 300, "NEWOBJ": 300, "BINPERSID": 300,
}  # fmt: skip
#: Bytes that all opcodes may take, in addition to twice the file's size.
_ROOM = 30_000_000


def load(file: IO[bytes], make: Make, persistent: Callable[[Any], Any], where: str) -> Any:
    """Read one pickle of a file in memory.

    ``make`` returns the value of a call, ``persistent`` the value of a persistent id.
    Raises DataError when the pickle is damaged, or does more than make plain data.
    """
    damage = (*LIBRARIES, pickle.PickleError)
    with reading(where, "file of torch.save", DataError, damage):
        start = file.tell()
        _check(file, where)
        file.seek(start)
        return _Unpickler(file, make, persistent).load()


def _check(file: IO[bytes], where: str) -> None:
    """Raise a DataError for opcodes that weights do not need, or that take much memory."""
    start = file.tell()
    size = file.seek(0, 2)
    file.seek(start)
    budget = _ROOM + 2 * size
    for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name not in _KNOWN:
            raise DataError(f"{where}: a pickle of weights has no {opcode.name}; it is not read")
        budget -= _COSTS.get(opcode.name, _COST)
        # Values are kept in an array up to the largest number that the file gives to one.
        if budget < 0 or ("PUT" in opcode.name and int(argument or 0) > count):
            raise DataError(
                f"{where}: expected the few objects that weights are, found more than its "
                f"{size:,} bytes bear out; the file was made to fill the memory"
            )


class _Unpickler(pickle.Unpickler):
    """Makes an empty class for each name of a class or function; see the module's docstring."""

    def __init__(self, file: IO[bytes], make: Make, persistent: Callable[[Any], Any]) -> None:
        super().__init__(file, encoding="latin-1")
        self._make, self._persistent = make, persistent

    def find_class(self, module: str, name: str, /) -> Any:
        def new(_: type, *arguments: Any) -> Any:
            return self._make(module, name, arguments)

        return type(name, (), {"__module__": module, "__new__": new})

    def persistent_load(self, pid: Any) -> Any:
        return self._persistent(pid)
