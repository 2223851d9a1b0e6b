"""fio's log of single requests: counted by direction and size; what is none is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.benchmarks.device_counters import largest_deviation_points, read_logs
from iolens.errors import InputError

# time in ms, latency in ns, direction, bytes, offset, and in later versions a priority
LINES = """\
2, 1000000, 0, 4096, 99356672, 0
2, 3000000, 1, 16384, 8093696, 0
11, 2000000, 0, 65536, 0, 0
12, 500, 2, 4096, 0, 0
"""


def test_reads_and_writes_are_distinguished_and_trims_left_out(tmp_path: Path) -> None:
    (tmp_path / "a_lat.1.log").write_text(LINES)
    (tmp_path / "a_lat.2.log").write_text("5, 4000000, 1, 16384, 4096\n")  # before priorities were logged
    log = read_logs(sorted(tmp_path.glob("*_lat.*.log")))
    assert (log.count("read"), log.count("write")) == (2, 2)
    assert log.read_requests_pct == 50.0
    assert log.size_shares("read") == {4096: 0.5, 65536: 0.5}
    assert log.size_shares("write") == {16384: 1.0}
    assert log.latency_percentile_s("write", 50.0) == pytest.approx(0.0035)
    assert log.latency_percentile_s("read", 100.0) == pytest.approx(0.002)


def test_no_request_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "a_lat.1.log").write_text("")
    for log in (read_logs([]), read_logs([tmp_path / "a_lat.1.log"])):
        assert log.read_requests_pct is None
        assert log.latency_percentile_s("read", 99.0) is None
        assert log.size_shares("read") == {}


@pytest.mark.parametrize(
    "line",
    ["2, 1000, 0, 4096", "2, 1000, 0", "rubbish", "2, x, 0, 4096, 0", "2, -5, 0, 4096, 0",
     f"2, {1 << 63}, 0, 4096, 0", "\x00\x01"],
)  # fmt: skip
def test_a_line_that_is_no_request_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a_lat.1.log"
    path.write_text(LINES + line + "\n")
    with pytest.raises(InputError, match=r"a_lat\.1\.log:5: "):
        read_logs([path])


def test_line_ends_of_another_system_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a_lat.1.log"
    path.write_bytes(LINES.replace("\n", "\r\n").encode())
    assert read_logs([path]).count("read") == 2


def test_the_worst_size_counts_also_one_that_was_not_asked_for() -> None:
    assert largest_deviation_points({4096: 0.5, 8192: 0.5}, {4096: 0.52, 8192: 0.48}) == pytest.approx(2.0)
    assert largest_deviation_points({4096: 1.0}, {4096: 0.9, 512: 0.1}) == pytest.approx(10.0)
    assert largest_deviation_points({}, {}) == 0.0
