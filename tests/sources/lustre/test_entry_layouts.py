"""Entries read by place say the same as entries read line by line, whatever their numbers, ids and damages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.sources.lustre import job_stats as entry_layouts
from iolens.sources.lustre.job_stats import EntryLayouts, JobStats, parse_job_stats

COUNTS = st.sampled_from([0, 1, 7, 4096, 10**10]) | st.integers(0, 2**64 + 5)
IDS = st.sampled_from(["4711", "", "dd.0", '"a: b.7"', "12_3", "x" * 31])


def bytes_line(name: str, samples: int, total: int, version: str) -> str:
    squares = "" if version == "2.12" else f", sumsq: {total * 3:18}"
    sizes = ", hist: {  }" if version == "2.16" and not samples else ", hist: { 4K: 3 }" if version == "2.16" else ""
    limits = f"min: {samples:7}, max: {total % 99999999:7}"
    return f"  {name + ':':16} {{ samples: {samples:11}, unit: bytes, {limits}, sum: {total:15}{squares}{sizes} }}\n"


def operation_line(name: str, samples: int, total: int, version: str) -> str:
    if version == "2.12":
        return f"  {name + ':':16} {{ samples: {samples:11}, unit:  reqs }}\n"
    times = f"min: {0:8}, max: {total % 77:8}, sum: {total:16}, sumsq: {total:18}"
    return f"  {name + ':':16} {{ samples: {samples:11}, unit: usecs, {times} }}\n"


@st.composite
def entry(draw: st.DrawFn, version: str) -> str:
    seconds, fraction = draw(st.integers(0, 2**38)), draw(st.integers(0, 10**9 - 1))
    times = f"  snapshot_time:   {seconds}\n"
    if version != "2.12":
        times = (
            f"  snapshot_time:   {seconds}.{fraction:09d} secs.nsecs\n"
            f"  start_time:      {seconds // 2}.{fraction:09d} secs.nsecs\n"
            f"  elapsed_time:    {seconds - seconds // 2}.{0:09d} secs.nsecs\n"
        )
    moved = "".join(bytes_line(name, draw(COUNTS), draw(COUNTS), version) for name in ("read_bytes", "write_bytes"))
    names = ("open", "punch", "statfs") if version == "2.12" else ("read", "write", "punch", "sync")
    operations = "".join(operation_line(name, draw(COUNTS), draw(COUNTS), version) for name in names)
    return f"- job_id:          {draw(IDS)}\n{times}{moved}{operations}"


TEXTS = st.sampled_from(["2.12", "2.15", "2.16"]).flatmap(
    lambda version: st.lists(entry(version), max_size=6).map(lambda parts: ("job_stats:\n" + "".join(parts)).encode())
)


class NoLayouts(EntryLayouts):
    """Every entry line by line."""

    def learn(self, text: bytes) -> None:
        pass


def line_by_line(text: bytes) -> JobStats:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iolens.sources.lustre.job_stats.EntryLayouts", NoLayouts)
        return parse_job_stats(text, "job_stats", 5)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_by_place_is_as_line_by_line(text: bytes) -> None:
    assert parse_job_stats(text, "job_stats", 5) == line_by_line(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.data())
def test_damaged_entries_too(text: bytes, data: st.DataObject) -> None:
    """A digit among blanks where no number stands is not noticed: nothing is read from there."""
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.sampled_from([b"", b"x", b"-", b" ", b"\n", b"{", b"\xff"]))
    damaged += text[place + data.draw(st.sampled_from([1, 2, 40])) :]
    assert parse_job_stats(damaged, "job_stats", 5) == line_by_line(damaged)


def test_histograms_of_anything_but_sizes_are_not_taken_for_sizes() -> None:
    line = "  read:            { samples: 3, unit: usecs, min: 0, max: 9, sum: 9, sumsq: 9, hist: { 4K: 2 } }\n"
    for lines in (line, bytes_line("read_bytes", 0, 0, "2.15") + line, bytes_line("read_bytes", 9, 9, "2.16") + line):
        text = "".join(f"- job_id: {job}\n  snapshot_time:   1537070542\n{lines}" for job in range(3)).encode()
        assert parse_job_stats(text, "job_stats", 5) == line_by_line(text)


def test_all_but_the_first_entries_of_a_text_are_read_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    learned = []
    monkeypatch.setattr(
        EntryLayouts, "learn", lambda self, text, learn=EntryLayouts.learn: learned.append(learn(self, text))
    )
    lines = bytes_line("write_bytes", 3, 8192, "2.12") + operation_line("punch", 1, 0, "2.12")
    entries = "".join(f"- job_id:          {job}\n  snapshot_time:   1537070542\n{lines}" for job in range(1000))
    assert len(parse_job_stats(f"job_stats:\n{entries}".encode(), "job_stats").jobs) == 1000
    assert len(learned) == 2  # the first, and the last, which ends with the text


def test_numbers_of_any_width_do_not_fill_the_memory_with_layouts() -> None:
    known = EntryLayouts(lambda line: {"punch": 1})
    for width in range(entry_layouts.MOST_LAYOUTS + 50):
        known.learn(b"  punch: { samples: 1, unit: reqs }" + b" " * width)
    assert len(known.known) == entry_layouts.MOST_LAYOUTS
