"""The process that reads Darshan logs for another one (`isolated.py`), within bounds of memory."""

from __future__ import annotations

import gc
import mmap
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from iolens.errors import InputError, IolensError, unexpected
from iolens.records import Rows
from iolens.sources.darshan.log import LogBatch, trace_chunks
from iolens.sources.darshan.messages import (
    MEMORY_BYTES,
    POSITION,
    LogRequest,
    MessagePipe,
    PipeMessage,
    RefusedLog,
    RowOptions,
    error_message,
    read_request,
    refused_message,
    rows_message,
    sign,
    trace_message,
)
from iolens.sources.darshan.rows import in_arrow, rows_of_batch

ROWS_PER_MESSAGE: Final = 50_000
OBJECTS_PER_COLLECTION: Final = 100_000  # a batch of logs is many objects, none of them in a cycle


def main(reading: int, writing: int, shared: int) -> None:
    """Answer requests of one descriptor on another; the third one is where to say what is being read."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = used + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)  # the library prints what it finds wrong
    sys.meta_path.insert(0, _WithoutPandas())
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    serve(MessagePipe(reading, writing), mmap.mmap(shared, mmap.PAGESIZE))


class _WithoutPandas:
    """Arrow imports pandas with its first array, where that is installed: 0.25 s and 38 MiB of no use here."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def serve(pipe: MessagePipe, position: mmap.mmap) -> None:
    """What the child does: answer requests until there is nobody to ask."""

    def at(log: int, module: int = -1) -> None:
        position[: POSITION.size] = POSITION.pack(log, module)

    pipe.send(sign("ready"))
    functions: dict[str, Callable[..., Iterator[PipeMessage]]] = {"rows": _rows, "dxt": _trace}
    while True:
        try:
            function, arguments = read_request(pipe.receive())
        except EOFError:
            return
        try:
            for message in functions[function](at, *arguments):
                pipe.send(message)
            pipe.send(sign("done"))
        except IolensError as error:
            pipe.send(error_message(error))
        except MemoryError:
            pipe.send(error_message(InputError("", f"takes more than {MEMORY_BYTES >> 30} GiB of memory")))
        except Exception as error:
            pipe.send(error_message(InputError("", f"not read; {unexpected(error)}")))


def _rows(at: Callable[..., None], asked: Sequence[Sequence[Any]], chosen: Mapping[str, Any]) -> Iterator[PipeMessage]:
    requests, options = [LogRequest(*request) for request in asked], RowOptions(**chosen)
    batch = LogBatch()
    refused: list[RefusedLog] = []
    for number, request in enumerate(requests):
        at(number)
        try:
            batch.read(Path(request.path), request.place, request.run_id, request.skipped, partial(at, number))
        except InputError as error:
            refused.append(RefusedLog(number, error))
        except MemoryError:
            reason = f"takes more than {MEMORY_BYTES >> 30} GiB of memory"
            refused.append(RefusedLog(number, InputError(request.place, reason)))
    at(len(requests))
    yield from map(refused_message, refused)
    if batch.heads:
        for rows in rows_of_batch(batch, options).values():
            for piece in pieces_of(rows):
                yield rows_message(in_arrow(piece) if options.in_arrow else piece)


def _trace(at: Callable[..., None], path: str) -> Iterator[PipeMessage]:
    for number, chunk in enumerate(trace_chunks(Path(path), path)):
        at(0, number)
        yield trace_message(chunk)


def pieces_of(rows: Rows, longest: int = ROWS_PER_MESSAGE) -> Iterator[Rows]:
    """Rows in pieces that are small enough to send."""
    if rows.count <= longest:
        yield rows
        return
    for begin in range(0, rows.count, longest):
        end = min(begin + longest, rows.count)
        columns = {name: values[begin:end] for name, values in rows.columns.items()}  # type: ignore[index]
        yield Rows(rows.table, columns, end - begin)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
