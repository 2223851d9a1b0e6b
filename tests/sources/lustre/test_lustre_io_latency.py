"""`io_latency_stats`: sizes and times by their lower bounds, counts as they were before they were printed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.histogram_names import LATENCY_HISTOGRAMS, LATENCY_SIZES, latency_size
from iolens.records import Item, Problem, Sample
from iolens.simulator.lustre_text import V2_17, io_latency_text, printed_count
from iolens.sources.lustre.histograms import parse_io_latency, true_count
from iolens.sources.lustre.lustre_lctl import SOURCE
from iolens.sources.reading.options import ReadOptions
from tests.soak import IS_SOAK

CAPTURES = Path(__file__).parent / "captures-2.17"
HEAD = "io_latency_by_size:\nsnapshot_time:  1775128281.261562279\nstart_time:     1775125270.250717218\n"
DIRECTIONS = {"read": "rd", "write": "wr"}


def sets_of(rows: str) -> dict[str, dict[str, int]]:
    """What was counted, by histogram."""
    latency = parse_io_latency((HEAD + rows).encode(), "io_latency_stats")
    assert latency.problems == []
    return {name: bins for name, bins in latency.sets.items() if bins}


def reasons_of(rows: str) -> list[str]:
    return [problem.reason for problem in parse_io_latency((HEAD + rows).encode(), "io_latency_stats").problems]


def test_sizes_and_times_are_lower_bounds_and_counts_are_taken_back() -> None:
    """64K: 16 to 31 pages of 4 KiB; 64us: more than 64 and at most 128 units of 1,024 ns; 1024 stands for 1,000."""
    assert sets_of("rd_64K: { 0us: 41, 1us: 43, 64us: 1024, }\nwr_64K: { uninit }\n") == {
        "io_latency_ns_from_65536": {"read:1024": 41, "read:2048": 42, "read:131072": 1000}
    }
    assert latency_size("io_latency_ns_from_65536") == 65536
    assert latency_size("io_time_ms") is None


def test_times_and_every_size_of_a_whole_text() -> None:
    """A size that is not printed has not counted: its first count is news."""
    latency = parse_io_latency((HEAD + "wr_1024K: { 1024us: 7, }\n").encode(), "io_latency_stats")
    assert (latency.snapshot_us, latency.start_us) == (1775128281261562, 1775125270250717)
    assert list(latency.sets) == list(LATENCY_HISTOGRAMS.values())
    assert sets_of("") == {}


def test_without_a_start_time_counting_began_at_an_unknown_time() -> None:
    text = "io_latency_by_size:\nsnapshot_time:  1775128281.261562279\nrd_4K: { 64us: 1, }\n"
    assert parse_io_latency(text.encode(), "io_latency_stats").start_us is None


def test_every_printed_count_is_taken_back_and_no_other_number_is_one() -> None:
    counts = range(5_000_000) if IS_SOAK else sorted(random.Random(7).sample(range(5_000_000), 50_000))
    assert all(true_count(printed_count(count)) == count for count in (*range(3000), *counts))
    printed = {printed_count(count) for count in range(6000)}
    assert {number for number in range(6144) if true_count(number) is not None} == {n for n in printed if n < 6144}
    assert true_count(42) is None
    assert true_count(1023) is None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("rd_64K: { 64us: 42, }", "42 is printed for no count"),
        ("rd_64K: { 48us: 41, }", "'48us: 41' is no bin"),
        ("rd_64K: { 64us: 41, 64us: 41, }", "64us occurs twice"),
        ("rd_64K: { 64us: -1, }", "'64us: -1' is no bin"),
        ("rd_64K: { 64us: 41", "not a row"),
        ("rd_64K: { 4294967296us: 41, }", "'4294967296us: 41' is no bin"),
        ("rd_64K: { 64us: 99999999999999999999, }", "99999999999999999999 is printed for no count"),
        ("rd_64K: { 64us: 41, }\nrd_64K: { 64us: 41, }", "the same row once more"),
    ],
)
def test_a_size_with_anything_not_understood_is_refused_and_no_other(row: str, reason: str) -> None:
    text = f"{HEAD}{row}\nwr_64K: {{ 64us: 7, }}\nrd_4K: {{ 64us: 5, }}\n"
    latency = parse_io_latency(text.encode(), "oss/io_latency_stats", first_line=100)
    (problem,) = latency.problems
    assert f"I/Os from 65536 bytes on refused: {reason}" in problem.reason
    assert problem.place == "oss/io_latency_stats"
    assert problem.line in (103, 104)
    assert LATENCY_HISTOGRAMS[65536] not in latency.sets
    assert latency.sets[LATENCY_HISTOGRAMS[4096]] == {"read:131072": 5}


@pytest.mark.parametrize(
    "row", ["rd_5K: { 64us: 41, }", "rd_: { }", "rd_999999999999999K: { 64us: 1, }", "what is this"]
)
def test_after_a_line_not_understood_only_what_is_printed_is_known(row: str) -> None:
    latency = parse_io_latency(f"{HEAD}{row}\nrd_4K: {{ 64us: 5, }}\n".encode(), "io_latency_stats")
    assert len(latency.problems) == 1
    assert latency.sets == {LATENCY_HISTOGRAMS[4096]: {"read:131072": 5}}


def test_a_text_that_is_cut_counts_nothing() -> None:
    latency = parse_io_latency((HEAD + "rd_4K: { 64us: 5, }\nrd_8K: { 64us: 1").encode(), "io_latency_stats")
    assert latency.sets == {}
    assert "ends within a line" in latency.problems[-1].reason
    assert reasons_of("rd_4K: { 64us: 5, }\n") == []


@pytest.mark.parametrize("text", [b"", b"\n", b"io_latency_by_size:\n"])
def test_a_file_without_rows_and_time_is_reported(text: bytes) -> None:
    assert len(parse_io_latency(text, "io_latency_stats").problems) == 1


counts = st.lists(st.integers(0, 1 << 62) | st.integers(0, 3000), min_size=32, max_size=32)
histograms = st.dictionaries(
    st.tuples(st.sampled_from(sorted(DIRECTIONS.values())), st.sampled_from(LATENCY_SIZES)), counts
)


@given(histograms)
def test_what_is_printed_is_what_is_read(made: dict[tuple[str, int], list[int]]) -> None:
    """Row n holds up to 2ⁿ units of 1,024 ns."""
    latency = parse_io_latency(io_latency_text(V2_17, 10**18, 10**17, made).encode(), "io_latency_stats")
    assert latency.problems == []
    for direction, short in DIRECTIONS.items():
        for size in LATENCY_SIZES:
            bins = {1024 << row: count for row, count in enumerate(made.get((short, size), ())) if count}
            counts = latency.sets[LATENCY_HISTOGRAMS[size]].items()
            prefix = f"{direction}:"
            assert {int(name.removeprefix(prefix)): n for name, n in counts if name.startswith(prefix)} == bins


@given(histograms, st.data())
def test_damage_is_reported_or_changes_what_is_printed(
    made: dict[tuple[str, int], list[int]], data: st.DataObject
) -> None:
    """A number that was damaged into another that could be printed cannot be noticed; all else is a problem."""
    text = bytearray(io_latency_text(V2_17, 10**18, 10**17, made).encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + 1] = data.draw(st.binary(max_size=3))
    latency = parse_io_latency(bytes(text), "io_latency_stats")
    assert latency.problems or len(latency.sets) == len(LATENCY_SIZES)


def latency_sets(path: Path) -> dict[str, dict[str, int]]:
    items: list[Item] = [item for capture in SOURCE.captures([path], ReadOptions()) for item in capture.items()]
    assert [str(item) for item in items if type(item) is Problem] == []
    (sample,) = [item for item in items if isinstance(item, Sample) and item.table == "target_histograms"]
    return {name: dict(part.counters) for name, part in sample.sets.items() if latency_size(name) is not None}


def test_true_counts_of_a_capture_are_exact() -> None:
    """The newer of two snapshots has all I/Os that were made; what moved between the two is a difference of counts."""
    truth = json.loads((CAPTURES / "truth.json").read_text())["true_counts_in_all"]
    sets, before = latency_sets(CAPTURES / "oss-2.txt"), latency_sets(CAPTURES / "oss-1.txt")
    for direction, short in DIRECTIONS.items():
        counts = {
            f"{latency_size(name) // 1024}K": sum(n for bin_, n in bins.items() if bin_.startswith(direction))
            for name, bins in sets.items()
        }
        assert {size: count for size, count in counts.items() if count} == truth[short]
    assert all(count >= before[name].get(bin_, 0) for name, bins in sets.items() for bin_, count in bins.items())


def test_the_shared_capture_is_the_one_of_these_tests(shared_data: Path) -> None:
    for name in ("oss-1.txt", "oss-2.txt", "truth.json"):
        assert (shared_data / "lustre-2.17/SYNTHETIC-oss" / name).read_bytes() == (CAPTURES / name).read_bytes()
