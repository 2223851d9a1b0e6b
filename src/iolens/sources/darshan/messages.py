"""What passes between a process that wants Darshan logs read and the child that reads them, over a pair of pipes."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from iolens.columns import DIRECTIONS, LARGEST
from iolens.errors import InputError, IolensError, UsageError
from iolens.records import Rows
from iolens.run_tables import RUN_FILES, RUN_RANKS, RUN_SERIES, RUNS

if TYPE_CHECKING:
    from iolens.sources.darshan.traces import TraceChunk


# Messages between a process and its child over a pair of pipes --------------------------------------------------------
# Data only, nothing that runs where it is received.
#
# A message is a head, JSON of one object, and buffers. Before it stand the bytes of both; the head lists the bytes of
# each buffer, which begin at multiples of 8. What is received is held against limits before memory is taken for it.

LONGEST_HEAD: Final = 1 << 20  # bytes
LONGEST_BODY: Final = 1 << 30  # bytes
MOST_BUFFERS: Final = 4096
_LENGTHS: Final = struct.Struct("QQ")  # of the head and of the buffers with their padding
_FIRST_TAKEN: Final = 1 << 20  # bytes of memory that an announced length is worth; more as they come
_PIPE_BYTES: Final = 1 << 20  # held on the way, where the system lets us
_MOST_WRITTEN: Final = 1024  # buffers of one call of the system


class MessageError(Exception):
    """What was received is no message, or none that was asked for."""


class StandstillError(Exception):
    """The other process did not go on."""


class PipeMessage(NamedTuple):
    """What passes at once."""

    head: Mapping[str, Any]
    buffers: Sequence[Any] = ()  # whatever has the buffer protocol, contiguous


class MessagePipe:
    """One end: a descriptor to read from and one to write to, which it closes."""

    def __init__(self, reading: int, writing: int) -> None:
        self.reading, self.writing = reading, writing

    @classmethod
    def pair(cls) -> tuple[MessagePipe, MessagePipe]:
        """Two ends; what one sends, the other receives."""
        (first_in, second_out), (second_in, first_out) = os.pipe(), os.pipe()
        with contextlib.suppress(OSError):  # a user may hold only so much in large pipes
            fcntl.fcntl(second_out, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        return cls(first_in, first_out), cls(second_in, second_out)

    def send(self, message: PipeMessage) -> None:
        """Send a message; OSError where nobody receives it."""
        parts: list[memoryview | bytes] = []
        sizes = []
        for buffer in message.buffers:
            view = memoryview(buffer)
            sizes.append(view.nbytes)
            if view.nbytes:
                parts += [view.cast("B"), bytes(-view.nbytes % 8)]
        head = json.dumps({**message.head, "sizes": sizes}).encode()
        self._write([_LENGTHS.pack(len(head), sum(map(_padded, sizes))) + head, *parts])

    def _write(self, parts: Sequence[memoryview | bytes]) -> None:
        left = [memoryview(part) for part in parts if len(part)]
        first = 0
        while first < len(left):
            written = os.writev(self.writing, left[first : first + _MOST_WRITTEN])
            while first < len(left) and written >= len(left[first]):
                written -= len(left[first])
                first += 1
            if written:
                left[first] = left[first][written:]

    def receive(self, longest_s: float | None = None) -> PipeMessage:
        """The next message, its buffers views of one piece of memory; EOFError where the other end is closed.

        MessageError where it is none, StandstillError where it stops in the middle for so long.
        """
        head_bytes, body_bytes = _LENGTHS.unpack(self._read(_LENGTHS.size, longest_s))
        if head_bytes > LONGEST_HEAD or body_bytes > LONGEST_BODY:
            raise MessageError(f"a message of {head_bytes} and {body_bytes} bytes")
        head, sizes = _read_head(self._read(head_bytes, longest_s))
        if sum(map(_padded, sizes)) != body_bytes:
            raise MessageError(f"buffers of {sum(map(_padded, sizes))} bytes in {body_bytes}")
        body = memoryview(self._read(body_bytes, longest_s))
        buffers, begin = [], 0
        for size in sizes:
            buffers.append(body[begin : begin + size])
            begin += _padded(size)
        return PipeMessage(head, buffers)

    def _read(self, length: int, longest_s: float | None) -> bytearray:
        content = bytearray(min(length, _FIRST_TAKEN))
        count = 0
        while count < length:
            if count == len(content):
                content += bytes(min(count, length - count))
            if longest_s is not None and not self.poll(longest_s):
                raise StandstillError
            with memoryview(content) as whole, whole[count:] as left:
                taken = os.readv(self.reading, [left])
            if not taken:
                raise EOFError
            count += taken
        return content

    def poll(self, longest_s: float) -> bool:
        """Wait until there is something to receive, or that it is known that nothing follows."""
        waiting = select.poll()  # not `select`, which knows no descriptor above 1023
        waiting.register(self.reading, select.POLLIN)
        return bool(waiting.poll(longest_s * 1000))

    def close(self) -> None:
        """Close both descriptors."""
        os.close(self.reading)
        os.close(self.writing)


def _padded(size: int) -> int:
    return size + -size % 8


def _read_head(content: bytearray) -> tuple[dict[str, Any], list[int]]:
    """A head, and the bytes of each buffer."""
    try:
        head = json.loads(content.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise MessageError("a head that is no JSON") from error
    sizes = head.pop("sizes", None) if isinstance(head, dict) else None
    if not isinstance(sizes, list) or len(sizes) > MOST_BUFFERS:
        raise MessageError("a head without a list of buffers")
    if not all(type(size) is int and 0 <= size <= LONGEST_BODY for size in sizes):
        raise MessageError("a buffer of no possible length")
    return head, sizes


# What passes between a process that wants Darshan logs read and the child that reads them -----------------------------
# libdarshan-util may let a log take over the child: what comes from there is data, and no table, column, type, length
# or number is believed that the schema or the request does not allow.

RUN_TABLES: Final = (RUNS, RUN_FILES, RUN_RANKS, RUN_SERIES)
MOST_ROWS: Final = 100_000  # of one message
_EVERYWHERE: Final = {"time", "start", "filesystem", "run_id"}  # columns of every table

MEMORY_BYTES: Final = 4 << 30  # address space of the child beyond what it starts with
POSITION: Final = struct.Struct("qq")  # number of the log in its request, and of the module; −1: before any


class LogRequest(NamedTuple):
    """One log to read, by its path; `place` is what messages call it. A tuple, since thousands are sent to a child."""

    path: str
    place: str
    run_id: str | None = None  # hash of the content it had when it was listed
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedLog:
    """A log that cannot be read, and why."""

    number: int  # in its request
    error: InputError


@dataclass(frozen=True, slots=True)
class RowOptions:
    """What the configuration and the command line say of logs."""

    mounts: Mapping[str, str] = field(default_factory=dict)  # configured mount point → file system
    filesystem: str | None = None
    paths: bool = True
    since_us: int | None = None  # only runs that end from here on
    until_us: int | None = None  # and before this time
    in_arrow: bool = False  # columns as Arrow arrays, which pass between processes at little cost


_FORMS: Final = {"array": 1, "nullable": 2, "numbers": 2, "texts": 2, "nulls": 0, "arrow": 3, "no_arrow": 0}
"""How a column is sent, and in how many buffers; of what type its values are, the schema of the table says.

A NumPy array; a `NullableArray`; lists of numbers or truth values, of texts, and of None alone; an Arrow array, and one
without any value.
"""
_TYPES: Final = {"timestamp": "int64", "int64": "int64", "float64": "float64", "bool": "bool", "string": "string"}


def request_message(function: str, *arguments: object) -> PipeMessage:
    """What is asked of the child."""
    return PipeMessage({"function": function}, [json.dumps(arguments).encode()])


def read_request(message: PipeMessage) -> tuple[str, list[Any]]:
    """The name of the function and its arguments."""
    return message.head["function"], json.loads(bytes(message.buffers[0]))


def sign(kind: str) -> PipeMessage:
    """A message that says no more than its name: `ready`, `done`."""
    return PipeMessage({"kind": kind})


def error_message(error: IolensError) -> PipeMessage:
    """Why there is no answer."""
    if isinstance(error, InputError):
        return PipeMessage({"kind": "error", "error": _facts(error)})
    return PipeMessage({"kind": "usage", "problem": str(error)})


def refused_message(refused: RefusedLog) -> PipeMessage:
    """A log that cannot be read."""
    return PipeMessage({"kind": "refused", "number": refused.number, "error": _facts(refused.error)})


def _facts(error: InputError) -> list[object]:
    return [error.place, error.problem, error.expected, error.line]


def rows_message(rows: Rows) -> PipeMessage:
    """Rows of a table of runs."""
    types = _types_of(rows.table)
    columns: list[tuple[str, str]] = []
    buffers: list[Any] = []
    for name, values in rows.columns.items():
        form, parts = _column_buffers(values, types[name])
        columns.append((name, form))
        buffers += parts
    return PipeMessage({"kind": "rows", "table": rows.table, "count": rows.count, "columns": columns}, buffers)


def trace_message(chunk: TraceChunk) -> PipeMessage:
    """A piece of a trace."""
    head = {name: getattr(chunk, name) for name in ("module", "record_id", "rank", "hostname", "direction")}
    columns = [getattr(chunk, name) for name in _TRACED]
    return PipeMessage({"kind": "trace", "count": len(chunk), **head}, columns)


_TRACED: Final = {"offset": "int64", "length": "int64", "start_s": "float64", "end_s": "float64"}


def _column_buffers(values: Any, type_: str) -> tuple[str, list[Any]]:
    import numpy as np  # late: see `_read_column`

    from iolens.arrays import NullableArray

    if isinstance(values, NullableArray):
        return "nullable", [_contiguous(values.values, type_), _contiguous(values.is_null, "bool")]
    if isinstance(values, np.ndarray):
        return "array", [_contiguous(values, type_)]
    if not isinstance(values, list):
        return _arrow_buffers(values, type_)
    is_null = [value is None for value in values]
    if all(is_null):
        return "nulls", []
    if type_ == "string":
        lengths = np.array([-1 if text is None else len(text) for text in values], np.int64)
        return "texts", [lengths, "".join(text for text in values if text is not None).encode("utf-8", "surrogatepass")]
    known = next(value for value in values if value is not None)
    numbers = np.array([known if value is None else value for value in values])
    return "numbers", [_contiguous(numbers, type_), np.array(is_null)]


def _contiguous(values: Any, type_: str) -> Any:
    import numpy as np

    return np.ascontiguousarray(values.astype(np.dtype(type_), casting="safe", copy=False))


def _arrow_buffers(values: Any, type_: str) -> tuple[str, list[Any]]:
    import pyarrow as pa

    if values.type == pa.null():
        return "no_arrow", []
    values = values.cast(_arrow_type(type_))
    if values.offset:
        values = pa.concat_arrays([values])
    buffers = [b"" if buffer is None else buffer for buffer in values.buffers()]
    return "arrow", [*buffers, b""][:3]


def _arrow_type(type_: str) -> Any:
    import pyarrow as pa

    return {"int64": pa.int64, "float64": pa.float64, "bool": pa.bool_, "string": pa.string}[type_]()


def _types_of(table: str) -> dict[str, str]:
    """Types of the columns of a table of runs."""
    (schema,) = (schema for schema in RUN_TABLES if schema.name == table)
    return {column.name: _TYPES[column.type] for column in schema.columns if column.type in _TYPES}


def read_answer(message: PipeMessage, kinds: Collection[str]) -> Rows | RefusedLog | TraceChunk | IolensError | str:
    """What the child sent, checked: a log may have taken it over. MessageError where it is not of these kinds.

    The name alone of what says no more.
    """
    kind = message.head.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        raise MessageError("an answer that was not asked for")
    try:
        answer: Rows | RefusedLog | TraceChunk | IolensError | str = _READERS[kind](message)
        return answer
    except MessageError:
        raise
    except Exception as error:
        raise MessageError(f"an answer of which something is wrong: {type(error).__name__}") from error


def _read_error(message: PipeMessage) -> IolensError:
    return _read_facts(message.head["error"])


def _read_usage(message: PipeMessage) -> IolensError:
    return UsageError(_text(message.head["problem"]))


def _read_refused(message: PipeMessage) -> RefusedLog:
    number = _whole(message.head["number"], 0, LARGEST)
    return RefusedLog(number, _read_facts(message.head["error"]))


def _read_facts(facts: Any) -> InputError:
    place, problem, expected, line = facts
    if line is not None:
        _whole(line, 0, LARGEST)
    return InputError(_text(place), _text(problem), _text(expected), line)


def _read_rows(message: PipeMessage) -> Rows:
    head, buffers = message.head, list(message.buffers)
    count, types = _whole(head["count"], 0, MOST_ROWS), _types_of(head["table"])
    columns: dict[str, object] = {}
    for name, form in head["columns"]:
        if name in columns:
            raise MessageError(f"column {name} twice")
        parts, buffers = buffers[: _FORMS[form]], buffers[_FORMS[form] :]
        if len(parts) != _FORMS[form]:
            raise MessageError(f"column {name} without its buffers")
        columns[name] = _read_column(form, types[name], parts, count)
    if buffers or not columns.keys() >= _EVERYWHERE:
        raise MessageError("buffers of no column, or columns missing")
    return Rows(head["table"], columns, count)


def _read_column(form: str, type_: str, parts: Sequence[memoryview], count: int) -> object:
    if form == "nulls":
        return [None] * count
    if form == "texts":
        if type_ != "string":
            raise MessageError(f"texts in a column of {type_}")
        return _read_texts(_numbers(parts[0], "int64", count), parts[1])
    if form in ("arrow", "no_arrow"):
        return _read_arrow(form, type_, parts, count)
    values = _numbers(parts[0], type_, count)
    if form == "array":
        return values
    from iolens.arrays import NullableArray  # late: whoever asks for one log should not wait for NumPy before it must

    nullable = NullableArray(values, _numbers(parts[1], "bool", count))
    return nullable.tolist() if form == "numbers" else nullable


def _numbers(buffer: memoryview, type_: str, count: int) -> Any:
    """An array that is a view of what was received."""
    import numpy as np

    dtype = np.dtype(type_)
    if dtype.kind not in "ifb" or len(buffer) != count * dtype.itemsize:
        raise MessageError(f"{len(buffer)} bytes as {count} values of {type_}")
    values = np.frombuffer(buffer, dtype)
    if dtype.kind == "b" and count and values.view(np.uint8).max() > 1:
        raise MessageError("a truth value that is neither")
    return values


def _read_texts(lengths: Any, content: memoryview) -> list[str | None]:
    """Texts that follow each other, by their lengths in characters; −1: None."""
    text = str(content, "utf-8", "surrogatepass")  # a path may have bytes that are no text
    known = lengths.clip(0)
    if (len(lengths) and (lengths.min() < -1 or lengths.max() > len(text))) or known.sum() != len(text):
        raise MessageError("texts of other lengths than said")
    pairs = zip(lengths.tolist(), known.cumsum().tolist(), strict=True)
    return [None if length < 0 else text[end - length : end] for length, end in pairs]


def _read_arrow(form: str, type_: str, parts: Sequence[memoryview], count: int) -> object:
    import pyarrow as pa

    if form == "no_arrow":
        return pa.nulls(count)
    arrow = _arrow_type(type_)
    validity, *rest = map(pa.py_buffer, parts[: 3 if type_ == "string" else 2])
    values = pa.Array.from_buffers(arrow, count, [validity if validity.size else None, *rest])
    values.validate(full=True)
    return values


def _read_trace(message: PipeMessage) -> TraceChunk:
    from iolens.sources.darshan.traces import TraceChunk

    head = message.head
    if head["module"] not in ("POSIX", "MPI-IO") or head["direction"] not in DIRECTIONS:
        raise MessageError("a trace of no module or direction")
    count = _whole(head["count"], 0, MOST_ROWS)
    pairs = zip(message.buffers, _TRACED.values(), strict=True)
    return TraceChunk(
        head["module"], _whole(head["record_id"], 0, 2**64 - 1), _whole(head["rank"], -LARGEST - 1, LARGEST),
        _text(head["hostname"]), head["direction"], *(_numbers(buffer, type_, count) for buffer, type_ in pairs),
    )  # fmt: skip


def _read_sign(message: PipeMessage) -> str:
    return _text(message.head["kind"])


_READERS: Final[Mapping[str, Callable[[PipeMessage], Any]]] = {
    "ready": _read_sign, "done": _read_sign, "error": _read_error, "usage": _read_usage, "refused": _read_refused,
    "rows": _read_rows, "trace": _read_trace,
}  # fmt: skip


def _whole(number: Any, least: int, most: int) -> int:
    if type(number) is not int or not least <= number <= most:
        raise MessageError("a number that cannot be")
    return number


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise MessageError("a text that is none")
    return text
