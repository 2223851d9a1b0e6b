"""The text of strace: calls, their times and errors, whatever options it was written with."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.sources.benchmarks.strace_trace import CallCount, StraceTrace, TracedCall, read_trace


def trace_of(*lines: str) -> StraceTrace:
    return read_trace("".join(f"{line}\n" for line in lines), "made-up")


def test_a_call_has_arguments_a_result_and_seconds() -> None:
    trace = trace_of('4711  1750000000.000100 write(3, "abcdefgh", 8) = 8 <0.000052>')
    assert trace.calls == [TracedCall("write", '3, "abcdefgh", 8', "8", 0.000052, 4711)]
    assert trace.calls[0].returned == 8
    assert trace.calls[0].error is None


def test_an_error_is_named() -> None:
    line = (
        '4711  1750000000.0 openat(AT_FDCWD, "/nowhere", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000011>'
    )
    (call,) = trace_of(line).calls
    assert (call.error, call.returned, call.seconds) == ("ENOENT", None, 0.000011)


@pytest.mark.parametrize(
    ("line", "pid", "seconds"),
    [
        ("close(3) = 0", None, None),  # plain
        ("close(3)        = 0", None, None),  # aligned
        ("1750000000.123456 close(3) = 0", None, None),  # -ttt
        ("12:34:56 close(3) = 0 <0.000010>", None, 0.00001),  # -t -T
        ("12:34:56.123456 close(3) = 0", None, None),  # -tt
        ("     0.000021 close(3) = 0", None, None),  # -r
        ("[pid  4711] close(3) = 0 <0.000010>", 4711, 0.00001),  # -f, on a terminal
        ("[pid 4711] 12:34:56 close(3) = 0", 4711, None),
        ("4711 close(3) = 0 <0.000000123>", 4711, 0.000000123),  # -f -o, nanoseconds
    ],
)
def test_process_and_times_may_be_absent(line: str, pid: int | None, seconds: float | None) -> None:
    assert trace_of(line).calls == [TracedCall("close", "3", "0", seconds, pid)]


def test_text_that_looks_like_a_result_stays_an_argument() -> None:
    (call,) = trace_of(r'write(1, "close(3) = 0 <0.5>\n", 19) = 19 <0.000020>').calls
    assert (call.name, call.result, call.seconds) == ("write", "19", 0.00002)


def test_calls_of_two_processes_are_put_together() -> None:
    trace = trace_of(
        "11 1.0 close(1 <unfinished ...>",
        "12 1.1 read(0,  <unfinished ...>",
        "11 1.2 <... close resumed>) = 0 <0.000077>",
        '12 1.3 <... read resumed>"ab", 2) = 2 <0.000300>',
    )
    assert [(call.pid, call.name, call.arguments, call.seconds) for call in trace.calls] == [
        (11, "close", "1", 0.000077),
        (12, "read", '0, "ab", 2', 0.0003),
    ]
    assert trace.unreturned == 0


def test_calls_that_never_return_are_counted_apart() -> None:
    trace = trace_of("11 exit_group(0) = ?", "11 +++ exited with 0 +++", "12 read(0,  <unfinished ...>")
    assert trace.calls == []
    assert trace.unreturned == 2


def test_signals_and_ends_of_processes_are_no_calls() -> None:
    trace = trace_of(
        "11 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=12} ---",
        "11 read(0, 0x7ffd, 8) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.1>",
        "12 1.0 +++ killed by SIGKILL +++",
        "strace: Process 12 attached",
    )
    assert [(call.name, call.error) for call in trace.calls] == [("read", "ERESTARTSYS")]


def test_a_last_line_that_was_cut_is_left_out() -> None:
    trace = read_trace("close(3) = 0\nclose(4) = 0 <0.00", "made-up")
    assert [call.arguments for call in trace.calls] == ["3"]
    assert trace.is_cut


def test_another_line_is_refused_with_its_number() -> None:
    with pytest.raises(InputError, match=r"made-up:2: 'total 24'; expected a line of strace"):
        trace_of("close(3) = 0", "total 24")


def test_the_summary_that_follows_a_trace_is_read() -> None:
    trace = trace_of(
        "close(3) = 0",
        "close(4) = -1 EBADF (Bad file descriptor)",
        "% time     seconds  usecs/call     calls    errors syscall",
        "------ ----------- ----------- --------- --------- ----------------",
        "100.00    0.000046          23         2         1 close",
        "  0.00    0.000000           0         1           getppid",
        "------ ----------- ----------- --------- --------- ----------------",
        "100.00    0.000046          15         3         1 total",
    )
    assert trace.summary == {"close": CallCount(2, 1), "getppid": CallCount(1)}
    assert trace.counts() == {"close": CallCount(2, 1)}


def captured(folder: Path, name: str) -> StraceTrace:
    path = folder / "strace" / name
    return read_trace(path.read_text("utf-8", "backslashreplace"), name)


@pytest.mark.parametrize("place", ["tmpfs", "root"])
def test_counts_of_a_real_trace_are_those_of_the_real_summary(shared_data: Path, place: str) -> None:
    """Two runs of the same dd, one traced for some calls, one counted for all."""
    summary = captured(shared_data, f"dd_summary_{place}.strace-c").summary
    assert summary is not None
    counts = captured(shared_data, f"dd_read8_{place}.strace").counts()
    assert counts == {name: summary[name] for name in ("openat", "close", "read", "lseek", "write")}
    assert counts["write"].calls == 2003
    assert counts["openat"] == CallCount(35, 16)
    writes = captured(shared_data, f"dd_write8_{place}.strace").counts()
    assert writes == {**counts, "fsync": CallCount(1)}


def test_the_eight_byte_calls_of_a_real_trace(shared_data: Path) -> None:
    trace = captured(shared_data, "dd_write8_tmpfs.strace")
    eight = [call for call in trace.calls if call.name == "write" and call.returned == 8]
    assert len(eight) == 2000
    assert all(call.seconds is not None and call.seconds > 0 for call in eight)


def test_a_real_trace_of_several_processes_loses_no_call(shared_data: Path) -> None:
    text = (shared_data / "strace" / "multi_process_tar.strace").read_text("utf-8", "backslashreplace")
    trace = captured(shared_data, "multi_process_tar.strace")
    events = text.count(" +++ exited with") + text.count(" --- SIGCHLD")
    interrupted = text.count("<unfinished ...>")
    assert interrupted == 145
    assert len(trace.calls) + trace.unreturned == len(text.splitlines()) - events - interrupted
    assert len({call.pid for call in trace.calls}) == 3
