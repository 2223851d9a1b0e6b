"""The written form of a part of an answer: an Arrow IPC stream, so that parts can be kept and sent between machines.

The stream has one batch with one column `data` of binaries: the arrays, as bytes in C order and little-endian. The
metadata of its schema has `iolens.part` (name and version of the form) and `iolens.values`: a JSON tree in which a list
is `[kind, …]` and everything else stands for itself:

    ["array", dtype, shape, place]          the array at that place of the column
    ["sparse", dtype, shape, place]         its places that are not zero (int64) at that place of the column, and their
                                            values at the next one
    ["list" | "tuple" | "set", items]       sets are sorted
    ["dict" | "counter", [[key, value], …]]
    ["time", microseconds since 1970]       UTC
    ["float", text]                         nan, inf and -inf
    [class name, {field: value, …}]         a dataclass

A reader names the classes it knows; any other name, another form or a stream that is cut off is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from typing import Any, Final, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from iolens.units import epoch_us, from_epoch_us

FORM, VALUES = b"iolens.part", b"iolens.values"
SCALARS: Final = (str, bool, int, type(None))
SPARSE: Final = 8  # values per one that is not zero, from which only those are written


class PartFormError(ValueError):
    """Bytes that are no part of this form."""


@dataclass(frozen=True, slots=True)
class PartForm:
    """Parts of one analysis; a change of what they hold is a new version. What `is_final` is read to be shown only.

    A new `revision` makes what is remembered anew; what is kept for good is all there is of its days, and still read.
    """

    name: str
    version: int
    classes: tuple[type, ...]
    is_final: bool = False
    revision: int = 0

    def written(self, part: object) -> bytes:
        """The part as bytes."""
        import pyarrow as pa

        arrays: list[bytes] = []
        tree = json.dumps(_tree(part, arrays))
        schema = pa.schema([("data", pa.large_binary())], {FORM: self._mark, VALUES: tree.encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_batch(pa.record_batch([pa.array(arrays, pa.large_binary())], schema=schema))
        return bytes(sink.getvalue())

    def digest(self, value: object) -> str:
        """Of a value: whatever it depends on depends on this."""
        return hashlib.sha256(self.written(value)).hexdigest()

    def read(self, data: bytes | memoryview) -> Any:
        """The part that was written."""
        import pyarrow as pa

        try:
            table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
            metadata = table.schema.metadata or {}
            if metadata.get(FORM) != self._mark:
                raise PartFormError(f"not a part of {self.name}, version {self.version}")
            arrays = [array for chunk in table.column("data").chunks for array in _binaries(chunk)]
            reader = _TreeReader(arrays, {kind.__name__: kind for kind in self.classes}, self.is_final)
            return reader.value(json.loads(metadata[VALUES]))
        except (pa.ArrowException, KeyError, IndexError, TypeError, AttributeError, ValueError, OSError) as error:
            raise error if isinstance(error, PartFormError) else PartFormError(f"damaged: {error}") from error

    @property
    def _mark(self) -> bytes:
        return f"{self.name}/{self.version}".encode()


@cache
def answer_form(kind: type, version: int = 1) -> PartForm:
    """That of the results of an analysis, with all that their fields hold."""
    return PartForm(
        f"answer-{kind.__name__.lower()}", version, tuple(dict.fromkeys(_dataclasses_in(kind))), is_final=True
    )


def _dataclasses_in(hint: Any) -> Iterator[type]:
    """Those that a type names."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
        for member in get_type_hints(hint).values():
            yield from _dataclasses_in(member)
    for argument in get_args(hint):
        yield from _dataclasses_in(argument)


def _binaries(column: Any) -> Iterator[memoryview]:
    """Each of the column, where it lies."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1].tolist()
    whole = memoryview(data) if data is not None else memoryview(b"")
    yield from (whole[begin:end] for begin, end in pairwise(ends))


def _tree(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        kind, place = "array", len(arrays)
        if np.count_nonzero(plain) * SPARSE < plain.size:
            kind, some = "sparse", np.flatnonzero(plain)
            arrays += [some.astype("<i8").tobytes(), plain.ravel()[some].tobytes()]
        else:
            arrays.append(plain.tobytes())
        return [kind, plain.dtype.str, list(plain.shape), place]
    if isinstance(value, np.generic):
        return _tree(value.item(), arrays)
    if isinstance(value, float):
        return value if math.isfinite(value) else ["float", str(value)]
    if isinstance(value, SCALARS):
        return value
    if isinstance(value, datetime):
        return ["time", epoch_us(value)]
    if isinstance(value, dict):
        kind = "counter" if isinstance(value, Counter) else "dict"
        return [kind, [[_tree(key, arrays), _tree(item, arrays)] for key, item in value.items()]]
    if isinstance(value, frozenset):
        return ["set", [_tree(item, arrays) for item in sorted(value)]]
    if isinstance(value, list | tuple):
        return [type(value).__name__, [_tree(item, arrays) for item in value]]
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: _tree(getattr(value, field.name), arrays) for field in fields(value)}
        return [type(value).__name__, members]
    raise TypeError(f"no part can hold a {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class _TreeReader:
    arrays: list[memoryview]
    classes: dict[str, type]
    is_final: bool  # arrays stay where they are, and cannot be written

    def value(self, tree: Any) -> Any:
        """What the tree stands for."""
        if not isinstance(tree, list):
            return tree
        kind, *rest = tree
        if kind in ("array", "sparse"):
            return self._array(kind, *rest)
        if kind == "float":
            return float(rest[0])
        if kind == "time":
            return from_epoch_us(rest[0])
        if kind in ("dict", "counter"):
            pairs = {self.value(key): self.value(item) for key, item in rest[0]}
            return Counter(pairs) if kind == "counter" else pairs
        if kind in ("list", "tuple", "set"):
            items = [self.value(item) for item in rest[0]]
            return items if kind == "list" else tuple(items) if kind == "tuple" else frozenset(items)
        return _made(self.classes[kind], {name: self.value(item) for name, item in rest[0].items()})

    def _array(self, kind: str, dtype: str, shape: list[int], place: int) -> NDArray[Any]:
        if kind == "array":
            values = np.frombuffer(self.arrays[place], np.dtype(dtype)).reshape(shape)
            return values if self.is_final else values.copy()
        whole = np.zeros(math.prod(shape), np.dtype(dtype))
        whole[np.frombuffer(self.arrays[place], "<i8")] = np.frombuffer(self.arrays[place + 1], np.dtype(dtype))
        return whole.reshape(shape)


def _made(kind: type, members: dict[str, Any]) -> Any:
    """An object with these fields and no others, as it was, without what its class does at its making."""
    if {field.name for field in fields(kind)} != set(members):
        raise PartFormError(f"a {kind.__name__} with other fields")
    value: Any = object.__new__(kind)
    for name, member in members.items():
        object.__setattr__(value, name, member)
    return value
