"""The written form of a part of an answer: an Arrow IPC stream, so that parts can be kept and sent between machines.

The stream has one batch with one column `data` of binaries: the arrays, as bytes in C order and little-endian. The
metadata of its schema has `iolens.part` (name and version of the form) and `iolens.values`: a JSON tree in which a list
is `[kind, …]` and everything else stands for itself:

    ["array", dtype, shape, place]          the array at that place of the column
    ["list" | "tuple" | "set", items]       sets are sorted
    ["dict" | "counter", [[key, value], …]]
    ["time", microseconds since 1970]       UTC
    ["float", text]                         nan, inf and -inf
    [class name, {field: value, …}]         a dataclass

A reader names the classes it knows; any other name, another form or a stream that is cut off is refused.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from iolens.units import epoch_us, from_epoch_us

FORM, VALUES = b"iolens.part", b"iolens.values"
SCALARS: Final = (str, bool, int, type(None))


class PartFormError(ValueError):
    """Bytes that are no part of this form."""


@dataclass(frozen=True, slots=True)
class PartForm:
    """Parts of one analysis; a change of what they hold is a new version.

    `summed`: they are packed from sums that an engine makes with all cores of its own.
    """

    name: str
    version: int
    classes: tuple[type, ...]
    summed: bool = False

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

    def read(self, data: bytes) -> Any:
        """The part that was written."""
        import pyarrow as pa

        try:
            table = pa.ipc.open_stream(data).read_all()
            metadata = table.schema.metadata or {}
            if metadata.get(FORM) != self._mark:
                raise PartFormError(f"not a part of {self.name}, version {self.version}")
            arrays = table.column("data").to_pylist()
            return _value(json.loads(metadata[VALUES]), arrays, {kind.__name__: kind for kind in self.classes})
        except (pa.ArrowException, KeyError, IndexError, TypeError, AttributeError, ValueError, OSError) as error:
            raise error if isinstance(error, PartFormError) else PartFormError(f"damaged: {error}") from error

    @property
    def _mark(self) -> bytes:
        return f"{self.name}/{self.version}".encode()


def _tree(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.ndarray):
        plain = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        arrays.append(plain.tobytes())
        return ["array", plain.dtype.str, list(plain.shape), len(arrays) - 1]
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


def _value(tree: Any, arrays: list[bytes], classes: dict[str, type]) -> Any:
    if not isinstance(tree, list):
        return tree
    kind, *rest = tree
    if kind == "array":
        dtype, shape, place = rest
        return np.frombuffer(arrays[place], np.dtype(dtype)).reshape(shape).copy()
    if kind == "float":
        return float(rest[0])
    if kind == "time":
        return from_epoch_us(rest[0])
    if kind in ("dict", "counter"):
        pairs = {_value(key, arrays, classes): _value(item, arrays, classes) for key, item in rest[0]}
        return Counter(pairs) if kind == "counter" else pairs
    if kind in ("list", "tuple", "set"):
        items = [_value(item, arrays, classes) for item in rest[0]]
        return items if kind == "list" else tuple(items) if kind == "tuple" else frozenset(items)
    return _made(classes[kind], {name: _value(item, arrays, classes) for name, item in rest[0].items()})


def _made(kind: type, members: dict[str, Any]) -> Any:
    """An object with these fields and no others, as it was, without what its class does at its making."""
    if {field.name for field in fields(kind)} != set(members):
        raise PartFormError(f"a {kind.__name__} with other fields")
    value: Any = object.__new__(kind)
    for name, member in members.items():
        object.__setattr__(value, name, member)
    return value
