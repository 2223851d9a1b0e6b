"""Times of calls: what of a trace counts, what is refused, and the program's own clock."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from iolens.benchmarks.studies import latency_study as call_times
from iolens.benchmarks.studies.latency_study import (
    TRACE_OPTIONS,
    CallTimes,
    LoopTimer,
    SmallFilePass,
    StraceTimer,
    check_counts,
    measured_calls,
    on_one_processor,
    strace_trouble,
)
from iolens.benchmarks.studies.plan import TimeUp
from iolens.benchmarks.studies.traced_program import BEGIN, CALLS, END, IDLE_CALL
from iolens.errors import IolensError
from iolens.sources.benchmarks.strace_trace import CallCount, StraceTrace, TracedCall, read_trace

# Python's own calls, then two files of a write; on another machine they have other names.
TRACE = f"""\
7 1.0 openat(AT_FDCWD, "/usr/lib/libc.so.6", O_RDONLY) = 3 <0.000500>
7 1.1 write(-1, "{BEGIN}", 13) = -1 EBADF (Bad file descriptor) <0.000009>
7 1.2 openat(AT_FDCWD, "data.0", O_RDWR|O_CREAT, 0600) = 3 <0.000030>
7 1.3 newfstatat(3, "", {{st_size=0, ...}}, AT_EMPTY_PATH) = 0 <0.000008>
7 1.4 write(3, "\\245\\245"..., 8) = 8 <0.000010>
7 1.5 openat(AT_FDCWD, "data.1", O_RDWR|O_CREAT, 0600) = 3 <0.000050>
7 1.6 newfstatat(3, "", {{st_size=0, ...}}, AT_EMPTY_PATH) = 0 <0.000008>
7 1.7 write(3, "\\245\\245"..., 8) = 8 <0.000012>
7 1.8 write(-1, "{END}", 11) = -1 EBADF (Bad file descriptor) <0.000009>
7 1.9 write(1, "open 1 2\\n", 9) = 9 <0.000100>
7 2.0 +++ exited with 0 +++
"""


def test_only_calls_between_the_marks_count() -> None:
    calls = read_trace(TRACE, "made-up").calls
    assert call_times.call_times(measured_calls(calls)) == [
        CallTimes("open", [0.00003, 0.00005]),
        CallTimes("fstat", [0.000008, 0.000008]),
        CallTimes("write", [0.00001, 0.000012], moved_bytes=16),
    ]


def test_a_trace_without_its_end_is_refused() -> None:
    calls = read_trace(TRACE, "made-up").calls
    with pytest.raises(IolensError, match="no measured part"):
        list(measured_calls(calls[:-2]))


def test_a_trace_must_have_as_many_calls_as_strace_counted() -> None:
    calls = [TracedCall("close", "3", "0", 1e-6)]
    check_counts(StraceTrace(calls, {"close": CallCount(1)}))
    with pytest.raises(IolensError, match="strace counted 2 calls of close"):
        check_counts(StraceTrace(calls, {"close": CallCount(2)}))
    with pytest.raises(IolensError, match="strace did not count the calls of close"):
        check_counts(StraceTrace(calls, {}))


def test_an_incomplete_trace_is_refused() -> None:
    for trace in (StraceTrace(summary={}, is_cut=True), StraceTrace()):
        with pytest.raises(IolensError, match="incomplete"):
            check_counts(trace)


def test_the_program_times_itself(tmp_path: Path) -> None:
    written = LoopTimer().measure(SmallFilePass(tmp_path, "write", 5, 8))
    assert [item.call for item in written] == [IDLE_CALL, *CALLS["write"]]
    assert all(len(item.seconds) == 5 and min(item.seconds) > 0 for item in written)
    read = {item.call: item.moved_bytes for item in LoopTimer().measure(SmallFilePass(tmp_path, "read", 5, 8))}
    assert read == {**dict.fromkeys((IDLE_CALL, *CALLS["read"]), 0), "read": 40}


def test_time_that_is_up_ends_a_point(tmp_path: Path) -> None:
    with pytest.raises(TimeUp):
        LoopTimer().measure(SmallFilePass(tmp_path, "write", 5, 8, seconds=-1.0))


def test_what_fails_is_reported_in_the_programs_words(tmp_path: Path) -> None:
    with pytest.raises(IolensError, match=r"No such file or directory: 'data\.0'"):
        LoopTimer().measure(SmallFilePass(tmp_path, "read", 1, 8))


def stand_in(folder: Path, script: str) -> None:
    path = folder / "strace"
    path.write_text(f"#!{sys.executable} -S\n{script}")
    path.chmod(0o755)


def test_without_strace_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert strace_trouble() == "strace is not on PATH"


def test_where_tracing_is_not_permitted_the_reason_is_straces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, "import sys; sys.exit('strace: error: PTRACE_TRACEME: Operation not permitted')")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    reason = strace_trouble()
    assert reason is not None
    assert reason.startswith("tracing is not permitted or does not work: ")
    assert reason.endswith("PTRACE_TRACEME: Operation not permitted")


def test_the_trace_lies_elsewhere_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in notes where it shall write, and writes nothing: the trace is refused, and its folder removed."""
    places, work = tmp_path / "places", tmp_path / "work"
    work.mkdir()
    stand_in(
        tmp_path,
        "import sys, os\n"
        "file = sys.argv[sys.argv.index('-o') + 1]\n"
        f"open({str(places)!r}, 'w').write(file)\n"
        "open(file, 'w').close()\n",
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(IolensError, match="incomplete"):
        StraceTimer().measure(SmallFilePass(work, "write", 1, 8))
    trace = Path(places.read_text())
    assert work not in trace.parents
    assert not trace.parent.exists()


def test_programs_share_one_processor_only_while_they_are_traced() -> None:
    usual = os.sched_getaffinity(0)
    with on_one_processor():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == usual


def test_calls_that_a_machine_does_not_have_are_no_error() -> None:
    names = TRACE_OPTIONS[-1].removeprefix("trace=").split(",")
    assert all(name.startswith("?") for name in names)
    assert {"?open", "?openat", "?fstat", "?newfstatat", "?getppid"} <= set(names)
