"""What the child says arrives as it was said; what it cannot say is refused by name, whoever speaks for it."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from iolens.arrays import NullableArray
from iolens.errors import InputError, IolensError, UsageError
from iolens.records import Rows
from iolens.sources import darshan
from iolens.sources.darshan import isolated
from iolens.sources.darshan.isolated import DarshanReader, rows_of_log, stream
from iolens.sources.darshan.log import LogBatch
from iolens.sources.darshan.messages import (
    LogRequest,
    MessageError,
    MessagePipe,
    PipeMessage,
    RefusedLog,
    RowOptions,
    error_message,
    read_answer,
    read_request,
    refused_message,
    request_message,
    rows_message,
    sign,
    trace_message,
)
from iolens.sources.darshan.rows import in_arrow, rows_of_batch
from iolens.sources.darshan.traces import TraceChunk
from tests.sources.darshan import LOGS
from tests.sources.darshan.conftest import EVERY_LOG, label

KINDS = ("rows", "refused", "trace", "done", "error", "usage")
WHOLE = LOGS / "n1-write.darshan"


def passed(message: PipeMessage) -> Any:
    """Sent through a pipe and read."""
    ours, theirs = MessagePipe.pair()
    try:
        sender = Thread(target=theirs.send, args=(message,))
        sender.start()
        received = ours.receive()
        sender.join()
        return read_answer(received, KINDS)
    finally:
        ours.close()
        theirs.close()


def plain(values: Any) -> tuple[object, ...]:
    """A column with all that tells it from another one."""
    if isinstance(values, NullableArray):
        return "nullable", values.values.dtype, values.values.tolist(), values.is_null.tolist()
    if isinstance(values, np.ndarray):
        return "array", values.dtype, values.tobytes()
    if isinstance(values, list):
        return "list", [*map(type, values)], [*map(repr, values)]
    return "arrow", values.type, values.to_pylist()


def same(rows: Rows) -> None:
    received = passed(rows_message(rows))
    assert (received.table, received.count) == (rows.table, rows.count)
    assert [*received.columns] == [*rows.columns]
    for name, values in rows.columns.items():
        assert plain(received.columns[name]) == plain(values), name


@pytest.mark.parametrize("path", EVERY_LOG, ids=label)
def test_rows_of_every_log_arrive_as_they_are(path: Path) -> None:
    batch = LogBatch()
    refusal: InputError | None = None
    try:
        batch.read(path, str(path))
    except InputError as error:
        refusal = error
    if refusal is not None:
        refused = passed(refused_message(RefusedLog(3, refusal)))
        assert (refused.number, str(refused.error)) == (3, str(refusal))
        return
    for rows in rows_of_batch(batch, RowOptions()).values():
        same(rows)
        same(in_arrow(rows))


def common(count: int) -> dict[str, object]:
    texts: list[object] = [f"run {number}" for number in range(count)]
    return {"time": np.arange(count), "start": np.arange(count), "filesystem": [None] * count, "run_id": texts}


@pytest.mark.parametrize("count", [0, 1, 2, 50_000])
def test_rows_of_any_number_and_columns_of_every_form(count: int) -> None:
    numbers = np.arange(count) - 5
    odd: list[object] = [None if number % 3 else "ü\udc80\n€𝄞"[: number % 5] for number in range(count)]
    rows = Rows("runs", {
        **common(count), "command": odd, "read_s": numbers / 7, "opens": NullableArray(numbers, numbers % 2 == 0),
        "uid": [None if number % 2 else -number for number in range(count)], "partial": [True] * count,
        "rate_files_overlap": [None if number % 2 else True for number in range(count)],
        "duration_s": [number / 3 for number in range(count)], "nodes": [None] * count,
    }, count)  # fmt: skip
    if count:
        same(rows)
    same(in_arrow(Rows("runs", {**rows.columns, "command": ["a", None, "€"][:count] + [None] * (count - 3)}, count)))


def test_a_part_of_an_arrow_array_arrives_alone() -> None:
    columns = in_arrow(Rows("runs", {**common(5), "opens": [None, 1, 2, None, 4]}, 5)).columns
    same(Rows("runs", {name: values[1:4] for name, values in columns.items()}, 3))  # type: ignore[index]


def test_requests_errors_signs_and_traces() -> None:
    requests = [LogRequest("/a\udc80", "a", None, ("POSIX",))]
    function, (logs,) = read_request(request_message("rows", requests))
    assert (function, [LogRequest(*log)._replace(skipped=tuple(log[3])) for log in logs]) == ("rows", requests)
    for error in (InputError("a\udc80", "b", "c", 7), InputError("", "b")):
        received = passed(error_message(error))
        facts = ("place", "problem", "expected", "line")
        assert type(received) is InputError
        assert [getattr(received, name) for name in facts] == [getattr(error, name) for name in facts]
    usage = passed(error_message(UsageError("no library")))
    assert (type(usage), str(usage)) == (UsageError, "no library")
    assert passed(sign("done")) == "done"
    chunk = TraceChunk("POSIX", 2**64 - 1, -1, "node", "read", np.arange(3), np.arange(3), np.ones(3), np.zeros(3))
    received = passed(trace_message(chunk))
    for name in TraceChunk.__slots__:
        assert np.array_equal(getattr(received, name), getattr(chunk, name)), name


def test_what_the_schema_does_not_know_is_not_sent() -> None:
    for values in (np.array([{}, []], object), np.array([1.5, 2.5]), [object(), 1], [2**70, 1], ["a", "b"]):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            rows_message(Rows("runs", {**common(2), "opens": values}, 2))


def changed(column: tuple[str, str], buffers: list[Any], count: int = 2, **head: object) -> PipeMessage:
    """Rows of two texts, and one column more."""
    whole = rows_message(Rows("runs", common(2), 2))
    names = [*whole.head["columns"], column]
    return PipeMessage({**whole.head, "columns": names, "count": count, **head}, [*whole.buffers, *buffers])


I64, OFFSETS = np.arange(2), np.array([0, 1, 2], np.int32)


@pytest.mark.parametrize(
    "message",
    [
        changed(("opens", "array"), [I64[:1]]),
        changed(("opens", "array"), [bytes(15)]),
        changed(("opens", "array"), []),
        changed(("opens", "array"), [I64, I64]),
        changed(("opens", "array"), [I64], count=1),
        changed(("opens", "array"), [I64], count=-2),
        changed(("opens", "array"), [I64], count=2**63),
        changed(("opens", "array"), [I64], count=True),
        changed(("opens", "object"), [I64]),
        changed(("opens", "pickle"), [b"cos\nsystem\n(S'true'\ntR."]),
        changed(("opens", "nullable"), [I64, np.array([0, 2], np.uint8)]),
        changed(("opens", "nullable"), [I64, np.array([True])]),
        changed(("opens", "texts"), [np.array([1, 1]), b"ab"]),
        changed(("command", "array"), [I64]),
        changed(("command", "numbers"), [I64, np.zeros(2, bool)]),
        changed(("date", "array"), [I64]),
        changed(("nothing", "array"), [I64]),
        changed(("time", "array"), [I64]),
        changed(("opens", "nulls"), [], table="calibrations"),
        changed(("opens", "nulls"), [], table=["runs"]),
        changed(("opens", "nulls"), [], columns={}),
        changed(("opens", "nulls"), [], columns=[["opens", "nulls"]]),
        changed(("opens", "nulls"), [], columns=7),
        changed(("command", "texts"), [np.array([1, 1]), b"\xff\xfe"]),
        changed(("command", "texts"), [np.array([1, 2]), b"ab"]),
        changed(("command", "texts"), [np.array([-2, 2]), b"ab"]),
        changed(("command", "texts"), [np.array([2**62, 2**62]), b"ab"]),
        changed(("command", "texts"), [np.array([2**63 - 1, 2**63 - 1]), b""]),
        changed(("opens", "arrow"), [b"", I64[:1], b""]),
        changed(("opens", "arrow"), [b"", I64], count=2),
        changed(("partial", "arrow"), [b"", b"", b""]),
        changed(("command", "arrow"), [b"", OFFSETS[:2], b"ab"]),
        changed(("command", "arrow"), [b"", OFFSETS[::-1].copy(), b"ab"]),
        changed(("command", "arrow"), [b"", OFFSETS * 1_000_000_000, b"ab"]),
        changed(("command", "arrow"), [b"", OFFSETS - 1, b"ab"]),
        changed(("command", "arrow"), [b"", OFFSETS, b"\xff\xfe"]),
        changed(("command", "arrow"), [b"", OFFSETS, b""]),
        PipeMessage({"kind": "refused", "number": -1, "error": ["a", "b", "", None]}),
        PipeMessage({"kind": "refused", "number": 0, "error": ["a", "b", ""]}),
        PipeMessage({"kind": "refused", "number": 0, "error": [{}, "b", "", None]}),
        PipeMessage({"kind": "refused", "number": 0, "error": ["a", "b", "", "c"]}),
        PipeMessage({"kind": "error"}),
        PipeMessage({"kind": "usage", "problem": []}),
        PipeMessage({"kind": "trace", "module": "POSIX"}),
        PipeMessage({"kind": []}),
        PipeMessage({"kind": "ready"}),
        PipeMessage({}),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_are_refused(message: PipeMessage) -> None:
    with pytest.raises(MessageError):
        passed(message)


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", 2), ("count", -1), ("module", "STDIO"), ("direction", "both"), ("rank", 2**63), ("record_id", -1),
     ("hostname", 7), ("rank", 0.5)],
)  # fmt: skip
def test_traces_that_cannot_be_are_refused(name: str, value: object) -> None:
    chunk = TraceChunk("POSIX", 7, 0, "node", "read", np.arange(3), np.arange(3), np.ones(3), np.zeros(3))
    message = trace_message(chunk)
    with pytest.raises(MessageError):
        passed(PipeMessage({**message.head, name: value}, message.buffers))
    with pytest.raises(MessageError):
        passed(PipeMessage(message.head, message.buffers[1:]))


class TakenOver:
    """A child in whose place something else speaks, which says `content` to every request."""

    def __init__(self, content: Callable[[MessagePipe], None]) -> None:
        self.content = content

    def __call__(self, ours: MessagePipe, descriptors: tuple[int, int, int]) -> Any:
        from iolens.sources.darshan.isolated import ForkedProcess

        def work() -> None:
            ours.close()
            pipe = MessagePipe(*descriptors[:2])
            pipe.send(sign("ready"))
            while True:
                pipe.receive()
                self.content(pipe)

        return ForkedProcess(work)


def says(*messages: PipeMessage) -> Callable[[MessagePipe], None]:
    return lambda pipe: [pipe.send(message) for message in messages] and None  # type: ignore[func-returns-value]


def length_of_2_63(pipe: MessagePipe) -> None:
    pipe._write([b"\xff" * 16])


@pytest.fixture
def taken_over(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[MessagePipe], None]], None]:
    def by(content: Callable[[MessagePipe], None]) -> None:
        monkeypatch.setattr(isolated, "may_fork", lambda: True)
        monkeypatch.setattr(isolated, "_forked", TakenOver(content))

    return by


BAD: Mapping[str, Callable[[MessagePipe], None]] = {
    "a length of 2⁶⁴": length_of_2_63,
    "another log": says(PipeMessage({"kind": "refused", "number": 9, "error": ["a", "b", "", None]})),
    "a trace": says(trace_message(TraceChunk("POSIX", 1, 0, "", "read", I64, I64, I64 / 1, I64 / 1))),
    "another table": says(changed(("opens", "nulls"), [], table="calibrations")),
    "not ready": says(sign("ready")),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_log_that_takes_over_the_child_is_refused(taken_over: Any, content: Callable[[MessagePipe], None]) -> None:
    taken_over(content)
    reader = DarshanReader()
    try:
        (refused,) = reader.read([LogRequest(os.fspath(WHOLE), "a log")], RowOptions())
    finally:
        reader.close()
    assert isinstance(refused, RefusedLog)
    assert str(refused.error).startswith("a log: damaged: libdarshan-util damaged its own process, which sent ")
    with pytest.raises(InputError, match=r"n1-write\.darshan: damaged: libdarshan-util damaged its own process"):
        rows_of_log(WHOLE)


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [rows_message(Rows("runs", common(1), 1))],
        [rows_message(Rows(table, common(2), 2)) for table in ("runs", "run_files", "run_ranks", "run_series")],
        [rows_message(Rows(table, common(1), 1)) for table in ("runs", "run_files", "run_ranks", "run_series")]
        + [rows_message(Rows("run_files", {**common(1), "path": [None]}, 1))],
    ],
    ids=["nothing", "one table", "two runs", "pieces with other columns"],
)
def test_tables_that_do_not_make_up_a_log_are_refused(taken_over: Any, messages: list[PipeMessage]) -> None:
    taken_over(says(*messages, sign("done")))
    with pytest.raises(InputError, match="which sent tables that do not fit together"):
        rows_of_log(WHOLE)


def test_rows_instead_of_a_trace_are_refused(taken_over: Any) -> None:
    taken_over(says(rows_message(Rows("runs", common(1), 1))))
    with pytest.raises(IolensError, match=r"n1-write\.darshan: damaged: libdarshan-util damaged its own process"):
        list(stream("dxt", WHOLE))


def test_nothing_is_unpickled() -> None:
    """No module of the source imports what makes objects of bytes."""
    imported = set()
    for path in Path(darshan.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert {"json", "struct"} <= imported
    assert not imported & {"pickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "multiprocessing"}


def test_arrow_columns_are_valid_arrays() -> None:
    received = passed(rows_message(in_arrow(Rows("runs", common(2), 2))))
    assert all(isinstance(values, pa.Array) for values in received.columns.values())
