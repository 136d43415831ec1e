"""Read pickles as plain data: containers, numbers, text, and the few calls that weights need.

Nothing is imported or called by a name in the file. A class or function stays the pair of its
names; a table of the few that weights need turns its arguments into a value.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import IO, Any, NamedTuple

from daskdl.errors import DataError
from daskdl.interop.guard import reading


class Global(NamedTuple):
    """A class or function that a pickle names."""

    module: str
    name: str


#: Makes a value from (name, arguments).
Make = Callable[[Global, tuple[Any, ...]], Any]
_VALUES = {
    "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING",
    "STRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BININT", "BININT1", "BININT2", "INT",
    "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
}  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()
#: Bytes of memory that most opcodes take at most; an opcode can be one byte of a file.
_COST = 100
_COSTS = {
    "BINPUT": 200, "LONG_BINPUT": 200, "PUT": 200, "MEMOIZE": 200, "EMPTY_SET": 300, "GLOBAL": 300,
    "STACK_GLOBAL": 300, "REDUCE": 300, "NEWOBJ": 300, "BINPERSID": 300,
}  # fmt: skip
#: Bytes that all opcodes may take, in addition to twice the file's size.
_ROOM = 30_000_000


def load(file: IO[bytes], make: Make, persistent: Callable[[Any], Any], where: str) -> Any:
    """Read one pickle of a file in memory.

    ``make`` returns the value of a call, ``persistent`` the value of a persistent id.
    Raises DataError when the pickle is damaged, or does more than make plain data.
    """
    with reading(where, "file of torch.save", DataError):
        return _run(file, make, persistent, where)


def _run(file: IO[bytes], make: Make, persistent: Callable[[Any], Any], where: str) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def marked() -> list[Any]:
        for at in range(len(stack) - 1, -1, -1):
            if stack[at] is _MARK:
                items = stack[at + 1 :]
                del stack[at:]
                return items
        raise ValueError("a mark is missing")

    argument: Any
    budget = _ROOM + 2 * _size(file)
    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        budget -= _COSTS.get(name, _COST)
        if budget < 0:
            raise DataError(
                f"{where}: expected the few objects that weights are, found more than its "
                f"{_size(file):,} bytes bear out; the file was made to fill the memory"
            )
        if name in ("PROTO", "FRAME"):
            continue
        if name == "STOP":
            return stack.pop()
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[int(argument)] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[int(argument)])
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_SET"):
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_SET": set}[name]())
        elif name in _TUPLES:
            count = _TUPLES[name]
            if len(stack) < count:
                raise ValueError("a tuple has too few elements")
            items = stack[len(stack) - count :]
            del stack[len(stack) - count :]
            stack.append(tuple(items))
        elif name in ("TUPLE", "LIST"):
            stack.append(tuple(marked()) if name == "TUPLE" else marked())
        elif name == "DICT":
            items = marked()
            stack.append(dict(zip(items[::2], items[1::2], strict=True)))
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else marked()
            _plain(stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else marked()
            _plain(stack[-1], dict).update(zip(items[::2], items[1::2], strict=True))
        elif name == "ADDITEMS":
            items = marked()
            _plain(stack[-1], set).update(items)
        elif name == "GLOBAL":
            stack.append(Global(*argument.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            last, first = stack.pop(), stack.pop()
            stack.append(Global(first, last))
        elif name in ("REDUCE", "NEWOBJ"):
            arguments, function = stack.pop(), stack.pop()
            stack.append(make(_plain(function, Global), _plain(arguments, tuple)))
        elif name == "BUILD":  # attributes of an OrderedDict, which weights do not need
            stack.pop()
            _plain(stack[-1], dict)
        elif name == "BINPERSID":
            stack.append(persistent(stack.pop()))
        elif name == "POP":
            stack.pop()
        elif name == "DUP":
            stack.append(stack[-1])
        else:
            raise DataError(f"{where}: a pickle of weights has no {name}; it is not read")
    raise ValueError("it ends too early")


def _size(file: IO[bytes]) -> int:
    here = file.tell()
    size = file.seek(0, 2)
    file.seek(here)
    return size


def _plain(value: Any, kind: type) -> Any:
    """Return a value; a ValueError unless its class is exactly ``kind``."""
    if type(value) is not kind:
        raise ValueError(f"expected a {kind.__name__}, found {type(value).__name__}")
    return value
