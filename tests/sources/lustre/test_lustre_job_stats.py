"""`job_stats`: ids of every kind, units of every version, entries that are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.records import CounterSet
from iolens.sources.lustre.job_stats import JobStats, job_id_bytes, job_id_text, parse_job_stats

WROTE_8K = b"  write_bytes:     { samples:           2, unit: bytes, min:    4096, max:    4096, sum:   8192 }\n"


def entry(job_id: bytes, *lines: bytes, time: bytes = b"1537070542") -> bytes:
    return b"- job_id:          " + job_id + b"\n  snapshot_time:   " + time + b"\n" + b"".join(lines or (WROTE_8K,))


def parse(*entries: bytes) -> JobStats:
    stats = parse_job_stats(b"job_stats:\n" + b"".join(entries), "job_stats")
    assert stats.problems == []
    return stats


@pytest.mark.parametrize(
    ("printed", "job_id"),
    [
        (b"cp.0", "cp.0"),
        (b"24", "24"),
        (b'"bash: line 1.1000"', "bash: line 1.1000"),
        (b'"node_exporter:989:es-2-virt3-co"', "node_exporter:989:es-2-virt3-co"),
        (b"@nodehost:0", "@nodehost:0"),
        (b"caf\xe9_run.1001", "caf\\xe9_run.1001"),
        ("café.1".encode(), "café.1"),
        (b"DOMAIN\\user.7", "DOMAIN\\user.7"),
        (b'"tmux:\\x20server.1000"', "tmux: server.1000"),  # as Lustre escapes it from 2.15 on
        (b'"caf\\xC3\\xA9.1"', "café.1"),
        (b'"caf\\xE9\\x5C.1"', "caf\\xe9\\.1"),
        (b"", ""),
        (b'""', ""),
    ],
)
def test_job_ids_of_every_kind(printed: bytes, job_id: str) -> None:
    assert parse(entry(printed)).jobs == {job_id: CounterSet({"write_bytes": 8192, "write_ops": 2})}


@given(st.binary(max_size=12) | st.sampled_from([b"\\xe9", b"\\x5cxe9", b"\xe9\\xe9"]))
def test_a_job_id_can_be_taken_back(raw: bytes) -> None:
    text = job_id_text(raw)
    text.encode("utf-8")
    assert job_id_bytes(text) == raw


def test_operations_are_counted_whatever_their_unit_and_timed_where_the_version_does() -> None:
    old = parse(entry(b"1", b"  punch:           { samples:           3, unit:  reqs }\n"))
    new = parse(
        entry(b"1", b"  punch: { samples:  3, unit: usecs, min:   16, max:   36, sum:     111, sumsq:   3353 }\n")
    )
    assert old.jobs == {"1": CounterSet({"punch": 3})}
    assert new.jobs == {"1": CounterSet({"punch": 3, "punch_us": 111})}


def test_2_16_prints_a_histogram_and_times_the_reads() -> None:
    lines = (
        b"  write_bytes: { samples: 6, unit: bytes, min: 2, max: 26759, sum: 69957, sumsq: 1, hist: { 32: 2, 4K: 1} }\n"
        b"  read_bytes:  { samples: 0, unit: bytes, min: 0, max: 0, sum: 0, sumsq: 0, hist: {  } }\n"
        b"  write:       { samples: 6, unit: usecs, min: 31, max: 2314, sum: 4761, sumsq: 10672811 }\n"
    )
    counters = {"write_bytes": 69957, "write_ops": 6, "read_bytes": 0, "read_ops": 0, "write_us": 4761}
    stats = parse(entry(b"vim.0", lines))
    assert stats.jobs["vim.0"].counters == counters
    assert stats.sizes["vim.0"].counters == {"write:32": 2, "write:4096": 1}


@pytest.mark.parametrize("histogram", [b"{ 32: }", b"{ 32: x }", b"{ much: 2 }"])
def test_a_histogram_that_is_not_understood_refuses_its_job(histogram: bytes) -> None:
    line = (
        b"  write_bytes: { samples: 6, unit: bytes, min: 2, max: 9, sum: 69957, sumsq: 1, hist: " + histogram + b" }\n"
    )
    stats = parse_job_stats(b"job_stats:\n" + entry(b"1", line) + entry(b"2"), "job_stats")
    assert (list(stats.jobs), stats.sizes) == (["2"], {})
    assert "histogram not understood" in stats.problems[0].reason


def test_a_sum_of_times_that_overflowed_is_reported_and_unknown() -> None:
    line = b"  write: { samples: 6, unit: usecs, min: 31, max: 2314, sum: -5, sumsq: 1 }\n"
    stats = parse_job_stats(b"job_stats:\n" + entry(b"1", WROTE_8K, line), "job_stats")
    assert stats.jobs["1"].counters == {"write_bytes": 8192, "write_ops": 2}
    assert "no sum of times" in stats.problems[0].reason


def test_before_2_10_bytes_are_called_read_and_write() -> None:
    line = b"  read: { samples: 2, unit: bytes, min: 4096, max: 4096, sum: 8192 }\n"
    assert parse(entry(b"1", line)).jobs["1"].counters == {"read_bytes": 8192, "read_ops": 2}


def test_the_start_of_a_job_and_the_last_activity_of_any() -> None:
    start = b"  start_time:      1748941594.152552987 secs.nsecs\n  elapsed_time:    614324.714508410 secs.nsecs\n"
    stats = parse(entry(b"1", start, WROTE_8K, time=b"1749555918.867061397 secs.nsecs"), entry(b"2"))
    assert stats.jobs["1"].start_us == 1748941594_152552
    assert stats.jobs["2"].start_us is None
    assert stats.snapshot_us == 1749555918_867061


def test_an_entry_without_id_counts_and_a_second_one_with_other_counters_is_reported() -> None:
    other = entry(b"", WROTE_8K.replace(b"8192", b"9"))
    stats = parse_job_stats(b"job_stats:\n" + entry(b"") + entry(b"7") + other, "job_stats")
    assert {job: now.counters["write_bytes"] for job, now in stats.jobs.items()} == {"": 8192, "7": 8192}
    assert [problem.reason for problem in stats.problems] == [
        "job '': occurs twice with different counters, the first was kept"
    ]


def test_no_job_at_all() -> None:
    assert parse().jobs == {}


def test_dos_line_ends() -> None:
    text = b"job_stats:\n" + entry(b"1") + entry(b"2")
    assert parse_job_stats(text.replace(b"\n", b"\r\n"), "job_stats").jobs == parse_job_stats(text, "x").jobs


def test_the_same_job_twice_with_the_same_counters_is_one_job() -> None:
    assert list(parse(entry(b"1"), entry(b"1")).jobs) == ["1"]


def test_the_same_job_twice_with_other_counters_keeps_the_first_and_is_reported() -> None:
    stats = parse_job_stats(b"job_stats:\n" + entry(b"1") + entry(b"1", WROTE_8K.replace(b"8192", b"9")), "j")
    assert stats.jobs["1"].counters["write_bytes"] == 8192
    assert [problem.line for problem in stats.problems] == [5]


@pytest.mark.parametrize("cut", range(-3, -len(WROTE_8K), -9))
def test_an_entry_cut_in_the_middle_is_refused_alone(cut: int) -> None:
    stats = parse_job_stats((b"job_stats:\n" + entry(b"1") + entry(b"2"))[:cut], "job_stats")
    assert list(stats.jobs) == ["1"]
    assert len(stats.problems) == 1


def test_a_damaged_line_refuses_its_entry_alone() -> None:
    damaged = entry(b"2", WROTE_8K.replace(b"samples", b"s\xffmples"))
    stats = parse_job_stats(b"job_stats:\n" + entry(b"1") + damaged + entry(b"3"), "job_stats")
    assert list(stats.jobs) == ["1", "3"]
    assert [problem.line for problem in stats.problems] == [7]


def test_a_damaged_first_line_does_not_mix_two_jobs() -> None:
    text = b"job_stats:\n" + entry(b"1") + entry(b"2").replace(b"- job", b"+ job") + entry(b"3")
    assert list(parse_job_stats(text, "job_stats").jobs) == ["3"]


def test_an_unknown_operation_is_reported_and_the_rest_kept() -> None:
    stats = parse_job_stats(b"job_stats:\n" + entry(b"1", WROTE_8K, b"  teleport: { samples: 1, unit: reqs }\n"), "j")
    assert stats.jobs["1"].counters == {"write_bytes": 8192, "write_ops": 2}
    assert [problem.line for problem in stats.problems] == [5]


@pytest.mark.parametrize("text", [b"", b"\n", b"something else\n"])
def test_what_is_not_a_job_stats_is_reported(text: bytes) -> None:
    assert len(parse_job_stats(text, "job_stats").problems) == 1
