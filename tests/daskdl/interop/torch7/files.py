"""Files of Torch7, written by hand: its binary format, and modules of nn."""

from __future__ import annotations

import struct

import numpy as np

from daskdl.interop.torch7.modules import graph_of

NAMES = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "uint8": "Byte"}


class Made:
    """An object to be written."""

    def __init__(self, kind, **fields):
        self.kind, self.fields = kind, fields


class Writer:
    """Writes values as torch.save does; a repeated value is written as its number."""

    def __init__(self):
        self.parts, self.known, self.count = [], {}, 0

    def add(self, form, *values):
        self.parts.append(struct.pack(f"<{form}", *values))

    def text(self, value):
        self.add("i", len(value))
        self.parts.append(value.encode())

    def begin(self, kind, value):
        """Write kind and number; return whether the value itself is still to be written."""
        self.add("i", kind)
        key = id(value)
        if key in self.known:
            self.add("i", self.known[key][0])
            return False
        self.count += 1
        self.known[key] = self.count, value
        self.add("i", self.count)
        return True

    def write(self, value):
        if value is None:
            self.add("i", 0)
        elif isinstance(value, (bool, np.bool_)):
            self.add("ii", 5, value)
        elif isinstance(value, (int, float)):
            self.add("id", 1, value)
        elif isinstance(value, str):
            self.add("i", 2)
            self.text(value)
        elif isinstance(value, (dict, list)):
            if self.begin(3, value):
                pairs = value.items() if isinstance(value, dict) else enumerate(value, 1)
                self.add("i", len(value))
                for key, part in pairs:
                    self.write(key)
                    self.write(part)
        elif isinstance(value, np.ndarray):
            if self.begin(4, value):
                self.tensor(value)
        elif self.begin(4, value):
            self.text("V 1")
            self.text(value.kind)
            if isinstance(value, Size):
                self.add(f"q{len(value.lengths)}q", len(value.lengths), *value.lengths)
            else:
                self.write(value.fields)

    def tensor(self, array):
        kind = NAMES[array.dtype.name]
        self.text("V 1")
        self.text(f"torch.{kind}Tensor")
        strides = [s // array.itemsize for s in array.strides]
        self.add(f"i{array.ndim}q{array.ndim}qq", array.ndim, *array.shape, *strides, 1)
        self.storage(array if array.base is None else array.base, kind)

    def storage(self, array, kind):
        key = array.ravel(order="K")
        self.count += 1
        self.add("ii", 4, self.count)
        self.text("V 1")
        self.text(f"torch.{kind}Storage")
        self.add("q", key.size)
        self.parts.append(key.tobytes())


class Size(Made):
    """A LongStorage, which has the lengths of a View."""

    def __init__(self, *lengths):
        super().__init__("torch.LongStorage")
        self.lengths = lengths


def t7(value):
    writer = Writer()
    writer.write(value)
    return b"".join(writer.parts)


def nn(kind, **fields):
    return Made(f"nn.{kind}", **fields)


def container(kind, *modules, **fields):
    return nn(kind, modules=list(modules), **fields)


def graph(module, **options):
    return graph_of(t7(module), "n.t7", **options).eval()
