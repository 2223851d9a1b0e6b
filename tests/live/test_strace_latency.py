"""`bench latency` with the real strace, in memory and on a disk: its counts are strace's own."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from iolens.analyses.bench_latency import bench_latency
from iolens.benchmarks import guardian
from iolens.benchmarks.studies.latency_study import (
    COMMON_NAMES,
    TRACE_OPTIONS,
    TRACED,
    LatencyParameters,
    SmallFilePass,
    StraceTimer,
    strace_trouble,
)
from iolens.benchmarks.studies.plan import StudyPlace, StudyPlan, new_folder
from iolens.benchmarks.studies.run import run_study
from iolens.benchmarks.studies.traced_program import CALLS, IDLE_CALL
from iolens.sources.benchmarks.strace_trace import read_trace

pytestmark = pytest.mark.live

PLACES = {"memory": "/dev/shm", "disk": "/var/tmp"}
FILES = 40
MANY_FILES = 100_000  # more than are made before the test ends


@pytest.fixture(scope="module", autouse=True)
def strace() -> None:
    if (trouble := strace_trouble()) is not None:
        pytest.skip(trouble)


@pytest.fixture(params=list(PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="iolens-live-", dir=PLACES[request.param]) as folder:
        yield Path(folder)


def counted_by_strace(work: SmallFilePass) -> dict[str, int]:
    """What `strace -c` counts of a whole run of the program, by our names of the calls."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts"
        command = ["strace", "-f", "-c", "-e", f"trace={TRACED}", "-o", str(file), *work.command()]
        subprocess.run(command, cwd=work.directory, check=True, capture_output=True)
        summary = read_trace(file.read_text(), "counts").summary
    assert summary is not None
    counts: dict[str, int] = {}
    for name, count in summary.items():
        common = COMMON_NAMES.get(name, name)
        counts[common] = counts.get(common, 0) + count.calls
    return counts


def test_counts_are_those_of_straces_own_summary(place: Path) -> None:
    """`strace -c` counts Python's calls too: what it counts more with files than without any is ours."""
    for direction in ("write", "read"):
        times = StraceTimer().measure(SmallFilePass(place, direction, FILES, 8))
        ours = {item.call: len(item.seconds) for item in times}
        assert ours == dict.fromkeys((IDLE_CALL, *CALLS[direction]), FILES)
        without = counted_by_strace(SmallFilePass(place, direction, 0, 8))
        with_files = counted_by_strace(SmallFilePass(place, direction, FILES, 8))
        more = {name: count - without.get(name, 0) for name, count in with_files.items()}
        assert {name: count for name, count in more.items() if count} == ours
        moved = {item.call: item.moved_bytes for item in times if item.moved_bytes}
        assert moved == {direction: 8 * FILES}


def test_a_trace_has_as_many_calls_as_strace_counted_in_the_same_run(place: Path, tmp_path: Path) -> None:
    """Of several processes, so that calls interrupt each other."""
    script = "for i in 1 2 3 4; do (cat data > /dev/null; ls / > /dev/null) & done; wait"
    (place / "data").write_bytes(bytes(100_000))
    command = ["strace", *TRACE_OPTIONS[:4], "-o", str(tmp_path / "trace"), "sh", "-c", script]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    trace = read_trace((tmp_path / "trace").read_text("utf-8", "backslashreplace"), "trace")
    assert trace.summary is not None
    counts = trace.counts()
    assert {name: count.calls for name, count in counts.items()} == {
        name: count.calls for name, count in trace.summary.items()
    }
    assert len({call.pid for call in trace.calls}) > 8
    assert trace.calls
    assert all(call.seconds is not None for call in trace.calls)


def test_a_study_of_two_places_leaves_rows_and_no_file(tmp_path: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="iolens-live-", dir=PLACES["memory"]) as memory,
        tempfile.TemporaryDirectory(prefix="iolens-live-", dir=PLACES["disk"]) as disk,
    ):
        places = (StudyPlace("memory", Path(memory)), StudyPlace("disk", Path(disk)))
        plan = StudyPlan("live-latency", "latency", places, LatencyParameters(operations=FILES), repeats=3)
        folder = new_folder(tmp_path / "study", plan)
        outcome = run_study(folder)
        assert outcome.is_whole
        assert outcome.left == []
        assert [list(Path(place).iterdir()) for place in (memory, disk)] == [[], []]
    result = bench_latency(row for rows in folder.journal().rows.values() for row in rows)
    assert (result.tools, result.places, result.rows_left_out) == (["strace"], ["memory", "disk"], 0)
    assert {item.calls for item in result.calls} == {3 * FILES}
    assert all(item.mean_s > 0 for item in result.calls)
    assert [(item.direction, item.place) for item in result.operations] == [
        ("write", "memory"), ("write", "disk"), ("read", "memory"), ("read", "disk"),
    ]  # fmt: skip


def test_the_traced_program_ends_with_strace(place: Path, tmp_path: Path) -> None:
    """A kill of strace leaves a program that nobody traces; it notices."""
    work = SmallFilePass(place, "write", MANY_FILES, 8)
    command = ["strace", *TRACE_OPTIONS, "-o", str(tmp_path / "trace"), *work.command()]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: (place / "data.1").exists())
            (program,) = psutil.Process(process.pid).children()
        finally:
            process.send_signal(signal.SIGKILL)
    wait_until(lambda: has_ended(program))
    assert len(list(place.iterdir())) < MANY_FILES


def test_a_study_that_is_ended_leaves_no_process_and_no_file(place: Path, tmp_path: Path) -> None:
    """As a batch system ends a job; strace itself blocks SIGTERM while it writes to a file."""
    parameters = LatencyParameters(operations=MANY_FILES, tracer="strace")
    plan = StudyPlan("live-ended", "latency", (StudyPlace("here", place),), parameters, repeats=1)
    folder = new_folder(tmp_path / "study", plan)
    program = (
        "import sys; from pathlib import Path\n"
        "from iolens.benchmarks.studies.plan import StudyFolder\n"
        "from iolens.benchmarks.studies.run import run_study\n"
        "print(run_study(StudyFolder(Path(sys.argv[1]))).stopped)\n"
    )
    command = [sys.executable, "-c", program, str(folder.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: any(place.glob("*/data.1")))
            children = psutil.Process(process.pid).children(recursive=True)
            programs = [child for child in children if guardian.__file__ not in child.cmdline()]
        finally:
            process.terminate()
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    assert len(programs) == 2  # strace, and the program it traces
    wait_until(lambda: all(map(has_ended, children)))
    assert list(place.iterdir()) == []


def has_ended(program: psutil.Process) -> bool:
    try:
        return not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
