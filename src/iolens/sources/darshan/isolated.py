"""A child that is a copy of this process: it has everything imported already, so that one log is read at once.

Only a process of one thread can be copied safely; NumPy's linear algebra starts more unless it is asked not to.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from iolens.errors import InputError, IolensError
from iolens.records import Problem, Rows
from iolens.sources.darshan.library import library_path
from iolens.sources.darshan.messages import (
    POSITION,
    RUN_TABLES,
    LogRequest,
    MessageError,
    MessagePipe,
    RefusedLog,
    RowOptions,
    StandstillError,
    read_answer,
    request_message,
)
from iolens.sources.reading.options import ReadOptions

if TYPE_CHECKING:
    import subprocess


POLL_S: Final = 0.01
_ALONE: Final = {"OPENBLAS_NUM_THREADS": "1"}  # NumPy then starts no thread


def stay_alone() -> None:
    """Ask NumPy for no threads, where it is not imported yet: for a program that computes nothing large."""
    if "numpy" not in sys.modules:
        for name, value in _ALONE.items():
            os.environ.setdefault(name, value)


def may_fork() -> bool:
    """Whether this process has one thread, and will have after NumPy is imported."""
    try:
        threads = len([*Path("/proc/self/task").iterdir()])
    except OSError:
        return False
    asked = all(os.environ.get(name) == value for name, value in _ALONE.items())
    return threads == 1 and ("numpy" in sys.modules or asked)


class ForkedProcess:
    """The copy, with as much of `subprocess.Popen` as is needed of it."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work)

    @staticmethod
    def _run(work: Callable[[], None]) -> None:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            work()
            code = 0
        finally:
            os._exit(code)  # what this process would do at its end is for the other one to do

    def poll(self) -> int | None:
        """Its exit code, the negative number of a signal, or None while it lives."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Until it ends; TimeoutExpired where it takes longer."""
        since = time.monotonic()
        while (code := self.poll()) is None:
            if timeout is not None and time.monotonic() - since > timeout:
                import subprocess  # late: only to be as Popen is

                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(POLL_S)
        return code

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


# Darshan logs read in a process of its own ----------------------------------------------------------------------------
# Libdarshan-util may abort, hang or take all memory on a damaged one.
#
# The child says in shared memory which log and module it is at. Where it dies or stands still, that module is left out
# and named; a log that fails before its modules is refused. The others of the same request are read again and kept.

STANDSTILL_S: Final = 60.0  # a module of one log may take so long
STANDSTILL_S_PER_MIB: Final = 2.0  # and so much longer for each MiB of the log
LONGEST_START_S: Final = 120.0  # that a child may take to be ready, on a busy machine
_ANSWERS: Final = {"rows": ("rows", "refused"), "dxt": ("trace",)}  # kinds of messages by what was asked
_BROKEN: Final = (EOFError, OSError, StandstillError, MessageError)  # ways in which a child can fail
_MOST_SKIPPED: Final = 4  # modules of one log that may bring a child down before it is refused


@dataclass(slots=True)
class LogProcess:
    """A child that reads logs; a new one is started when it has died."""

    standstill_s: float = STANDSTILL_S
    _process: subprocess.Popen[bytes] | ForkedProcess | None = None
    _pipe: MessagePipe | None = None
    _position: mmap.mmap | None = None

    def ask(self, function: str, *arguments: object, patience_s: float = 0.0) -> Generator[Any]:
        """What the child sends on a request; EOFError where it dies meanwhile, StandstillError where it hangs.

        MessageError where it sends anything else than rows and refusals, or pieces of a trace: its memory is damaged.
        """
        self.start()
        assert self._pipe is not None
        assert self._position is not None
        self._position[: POSITION.size] = POSITION.pack(-1, -1)
        self._pipe.send(request_message(function, *arguments))
        longest_s = self.standstill_s + patience_s
        try:
            while True:
                self._wait(longest_s)
                answer = read_answer(self._pipe.receive(longest_s), (*_ANSWERS[function], "done", "error", "usage"))
                if answer == "done":
                    return
                if isinstance(answer, IolensError):
                    raise answer
                yield answer
        except GeneratorExit:
            self.stop()  # nobody waits for the rest of the answer
            raise

    def _wait(self, longest_s: float) -> None:
        """Until there is a message; as long as the position moves on, the child works."""
        assert self._pipe is not None
        before, since = self.position, time.monotonic()
        while not self._pipe.poll(min(1.0, longest_s)):
            if self.position != before:
                before, since = self.position, time.monotonic()
            elif time.monotonic() - since > longest_s:
                raise StandstillError

    @property
    def position(self) -> tuple[int, int]:
        """Which log and module the child is at, or was when it died."""
        assert self._position is not None
        log, module = POSITION.unpack(self._position[: POSITION.size])
        return log, module

    def start(self) -> None:
        """Begin a child, unless there is one."""
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        library_path()  # says what to install, before a child fails to
        self._pipe, theirs = MessagePipe.pair()
        shared = os.memfd_create("iolens-darshan")
        os.truncate(shared, mmap.PAGESIZE)
        self._position = mmap.mmap(shared, mmap.PAGESIZE)
        descriptors = theirs.reading, theirs.writing, shared
        self._process = _forked(self._pipe, descriptors) if may_fork() else _spawned(descriptors)
        theirs.close()
        os.close(shared)
        try:
            if self._pipe.poll(LONGEST_START_S):
                read_answer(self._pipe.receive(LONGEST_START_S), ["ready"])
                return
        except _BROKEN:
            pass
        raise InputError("libdarshan-util", f"the process that reads Darshan logs did not start ({self.death()})")

    def how_it_broke(self, error: Exception) -> str:
        """End a child that is of no use any more; what to say of the log it was at."""
        if isinstance(error, StandstillError):
            self.stop()
            return f"damaged: libdarshan-util did not end within {self.standstill_s:g} s"
        if isinstance(error, MessageError):
            self.stop()
            return f"damaged: libdarshan-util damaged its own process, which sent {error}"
        return f"damaged: libdarshan-util crashed ({self.death()})"

    def death(self) -> str:
        """End a child that is of no use any more; why it died, in words."""
        import subprocess  # late: a copy that lives on needs none of it

        process = self._process
        assert process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        code = process.poll()
        self.stop()
        if code is None:
            return "was ended"
        return f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"exit code {code}"

    def stop(self) -> None:
        """End the child, if there is one."""
        if self._pipe is not None:
            self._pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._position is not None:
            self._position.close()
        self._process = self._pipe = self._position = None


_Numbered = list[tuple[int, LogRequest]]


def _spawned(descriptors: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    """A new program, which takes over the descriptors."""
    import subprocess

    return subprocess.Popen(
        [sys.executable, "-m", "iolens.sources.darshan.child", *map(str, descriptors)],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def _forked(ours: MessagePipe, descriptors: tuple[int, int, int]) -> ForkedProcess:
    """A copy of this process, without the end of the pipe that is not its own."""
    from iolens.sources.darshan.child import main

    def work() -> None:
        ours.close()
        main(*descriptors)

    return ForkedProcess(work)


class DarshanReader:
    """Reads logs in a child, whatever they do to it."""

    def __init__(self, standstill_s: float = STANDSTILL_S) -> None:
        self.process = LogProcess(standstill_s)

    def read(self, requests: Sequence[LogRequest], options: RowOptions) -> Iterator[Rows | RefusedLog]:
        """Rows of all logs that can be read, and a refusal for each of the others, by its number."""
        work: deque[_Numbered] = deque([list(enumerate(requests))])
        while work:
            logs = work.popleft()
            has_rows = False
            try:
                for item in self._asked(logs, options):
                    has_rows = True
                    yield item
            except (*_BROKEN, InputError) as error:
                if has_rows:  # all logs had been read: it was not one of them
                    raise InputError(logs[0][1].place, f"not read on; {self._how_it_ended(error)}") from error
                for left in self._without_the_cause(logs, error):
                    if isinstance(left, RefusedLog):
                        yield left
                    elif left:
                        work.append(left)

    def _asked(self, logs: _Numbered, options: RowOptions) -> Iterator[Rows | RefusedLog]:
        requests = [request for _, request in logs]
        answers = self.process.ask("rows", requests, asdict(options), patience_s=_patience_s(requests))
        for item in answers:
            if isinstance(item, RefusedLog) and item.number >= len(logs):
                answers.throw(MessageError(f"the refusal of log {item.number} of {len(logs)}"))
            yield RefusedLog(logs[item.number][0], item.error) if isinstance(item, RefusedLog) else item

    def _without_the_cause(self, logs: _Numbered, error: Exception) -> Iterator[_Numbered | RefusedLog]:
        """What to read instead of logs that a child did not survive, and what is refused of them."""
        place, module = self.process.position
        how = self._how_it_ended(error)
        if len(logs) > 1 and (isinstance(error, InputError) or not 0 <= place < len(logs)):
            yield from ([log] for log in logs)  # none was at fault by itself, or nobody knows which
            return
        number, request = logs[max(0, min(place, len(logs) - 1))]
        skipped = (*request.skipped, _module_name(module))
        others = [log for log in logs if log[0] != number]
        if isinstance(error, InputError) or module < 0 or len(skipped) > _MOST_SKIPPED:
            yield RefusedLog(number, InputError(request.place, how))
            yield others
        else:
            yield sorted([*others, (number, request._replace(skipped=skipped))], key=itemgetter(0))

    def _how_it_ended(self, error: Exception) -> str:
        if isinstance(error, InputError):
            return error.problem
        return self.process.how_it_broke(error)

    def close(self) -> None:
        """End the child."""
        self.process.stop()


def _patience_s(requests: Sequence[LogRequest]) -> float:
    largest = 0
    for request in requests:
        with contextlib.suppress(OSError):
            largest = max(largest, os.stat(request.path).st_size)  # noqa: PTH116 (for each of many thousands)
    return largest / (1 << 20) * STANDSTILL_S_PER_MIB


def _module_name(number: int) -> str:
    from iolens.sources.darshan.library import MODULES

    return MODULES[number] if 0 <= number < len(MODULES) else f"module {number}"


def rows_of_log(path: str | Path, options: ReadOptions = ReadOptions()) -> dict[str, Rows]:  # noqa: B008 (frozen)
    """The rows of one log by table, read in a child process; InputError with the reason where it cannot be read."""
    reader = DarshanReader()
    if not may_fork():
        reader.process.start()  # it begins while this process imports what it needs, which a copy has already
    from iolens.sources.darshan.settings import row_options

    try:
        pieces: dict[str, list[Rows]] = {}
        for item in reader.read([LogRequest(os.fspath(path), os.fspath(path))], row_options(options, str(path))):
            if isinstance(item, RefusedLog):
                raise item.error
            pieces.setdefault(item.table, []).append(item)
        if not _is_whole(pieces):
            error = MessageError("tables that do not fit together")
            raise InputError(str(path), reader.process.how_it_broke(error))
        return {table: _joined_pieces(rows) for table, rows in pieces.items()}
    finally:
        reader.close()


def _is_whole(pieces: Mapping[str, Sequence[Rows]]) -> bool:
    """Whether all tables of one log are there, their pieces with the same columns of the same kinds."""
    kinds = {
        table: [{name: type(values) for name, values in piece.columns.items()} for piece in of_table]
        for table, of_table in pieces.items()
    }
    is_alike = all(kind == of_table[0] for of_table in kinds.values() for kind in of_table)
    is_complete = kinds.keys() == {table.name for table in RUN_TABLES}
    return is_alike and is_complete and sum(map(len, pieces[RUN_TABLES[0].name])) <= 1


def _joined_pieces(pieces: Sequence[Rows]) -> Rows:
    """Pieces of one table together again."""
    if len(pieces) == 1:
        return pieces[0]
    import numpy as np  # late: whoever asks for nothing but a log to be read should not wait

    from iolens.arrays import NullableArray

    columns: dict[str, object] = {}
    for name in pieces[0].columns:
        parts: list[Any] = [piece.columns[name] for piece in pieces]
        if isinstance(parts[0], NullableArray):
            is_null = np.concatenate([part.is_null for part in parts])
            columns[name] = NullableArray(np.concatenate([part.values for part in parts]), is_null)
        else:
            columns[name] = np.concatenate(parts) if isinstance(parts[0], np.ndarray) else list(chain(*parts))
    return Rows(pieces[0].table, columns, sum(map(len, pieces)))


def stream(function: str, path: str | Path) -> Iterator[Any]:
    """What the child sends of one log, piece by piece; InputError where it cannot be read to its end."""
    process = LogProcess()
    try:
        yield from process.ask(function, os.fspath(path), patience_s=_patience_s([LogRequest(os.fspath(path), "")]))
    except _BROKEN as error:
        raise InputError(str(path), process.how_it_broke(error)) from error
    finally:
        process.stop()


def problem_of(refused: RefusedLog) -> Problem:
    """What to say of a log that was refused."""
    error = refused.error
    return Problem(error.place, error.line, error.problem + (f"; expected {error.expected}" if error.expected else ""))
