"""`brw_stats`: every section of every version, and what happens to damaged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.histogram_names import IN_FLIGHT, IN_FLIGHT_POW2, in_flight_of
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.sources.lustre.histograms import DISK_IO_SIZE, SECTIONS, Histograms, parse_brw_stats

Rows = dict[int, tuple[int, int]]  # label: reads, writes


def render(sections: dict[str, Rows], bar: str = "|", head: str = "snapshot_time: 1600000000.5 (secs.usecs)") -> str:
    """A brw_stats text as a server prints it."""
    text = f"{head}\n"
    for title, rows in sections.items():
        unit = "maps" if "maps" in title else "rpcs" if "pages" in title or "blocks" in title else "ios"
        text += f"\n                           read      {bar}     write\n"
        text += f"{title:<22} {unit:<5} % cum % {bar}  {unit:<11} % cum %\n"
        totals = [max(sum(row[direction] for row in rows.values()), 1) for direction in (0, 1)]
        sums = [0, 0]
        for label, counts in sorted(rows.items()):
            sums = [sums[direction] + counts[direction] for direction in (0, 1)]
            columns = [f"{counts[w]} {100 * counts[w] // totals[w]} {100 * sums[w] // totals[w]}" for w in (0, 1)]
            text += f"{label_text(label)}:\t\t{columns[0]}   {bar} {columns[1]}\n"
    return text


def label_text(label: int) -> str:
    for suffix, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if label and label % factor == 0:
            return f"{label // factor}{suffix}"
    return str(label)


def parse(text: str) -> Histograms:
    result = parse_brw_stats(text.encode(), "brw_stats")
    assert result.problems == []
    return result


def expected(rows: Rows) -> dict[str, int]:
    return {
        f"{direction}:{label}": row[i]
        for i, direction in enumerate(DIRECTIONS)
        for label, row in rows.items()
        if row[i]
    }


def test_disk_io_size_fills_every_bin() -> None:
    sizes = parse(render({"disk I/O size": {4096: (0, 2), 1 << 20: (7, 5)}})).sizes
    assert sizes is not None
    assert (sizes["write_ios_4096"], sizes["read_ios_1048576"], sizes["write_ios_1048576"]) == (2, 7, 5)
    assert sum(sizes.values()) == 14
    assert len(sizes) == 2 * len(SIZE_BINS) + 2


def test_bins_that_are_not_modelled_are_counted_outside() -> None:
    sizes = parse(render({"disk I/O size": {1: (0, 327301), 4: (3, 0), 128 << 20: (1, 2)}})).sizes
    assert sizes is not None
    assert (sizes["read_ios_outside"], sizes["write_ios_outside"]) == (4, 327303)
    assert sum(sizes.values()) == 327307


@pytest.mark.parametrize(("title", "name"), [item for item in SECTIONS.items() if item[1] != DISK_IO_SIZE])
def test_every_other_section_is_a_histogram_of_its_non_zero_bins(title: str, name: str) -> None:
    rows = {1: (13, 0), 2: (0, 0), 3: (5, 6)}
    assert parse(render({title: rows})).sets == {name: {"read:1": 13, "read:3": 5, "write:3": 6}}


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ((1, 2, 3), IN_FLIGHT), ((1, 2, 3, 4), IN_FLIGHT), ((4, 5), IN_FLIGHT), (tuple(range(1, 32)), IN_FLIGHT),
        ((1, 2, 4), IN_FLIGHT_POW2), ((2, 4), IN_FLIGHT_POW2), ((4, 8), IN_FLIGHT_POW2), ((64,), IN_FLIGHT_POW2),
        ((), None), ((1,), None), ((1, 2), None), ((2,), None), ((8,), None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version_says", [False, True])
def test_ios_in_flight_are_linear_or_in_powers_of_two(
    labels: tuple[int, ...], name: str | None, version_says: bool
) -> None:
    """By the rows where they tell, else by the version; 1 and 2 mean the same in both."""
    text = render({"disk I/Os in flight": {label: (label, 2) for label in labels}})
    result = parse_brw_stats(text.encode(), "brw_stats", pow2_in_flight=version_says)
    meant = name or (IN_FLIGHT_POW2 if version_says else IN_FLIGHT)
    assert result.sets == {meant: expected({label: (label, 2) for label in labels})}


def test_a_bin_in_flight_has_a_mean_and_a_smallest_number() -> None:
    """Of powers of two 8 stands for 5, 6, 7 and 8."""
    assert [in_flight_of(IN_FLIGHT, label) for label in (1, 2, 8, 31)] == [(1, 1), (2, 2), (8, 8), (31, 31)]
    assert [in_flight_of(IN_FLIGHT_POW2, label) for label in (1, 2, 4, 8)] == [(1, 1), (2, 2), (3.5, 3), (6.5, 5)]


def test_a_section_with_header_and_no_row_is_all_zero() -> None:
    result = parse(render({"discontiguous pages": {}, "disk I/O size": {}}))
    assert result.sets == {"discontiguous_pages": {}}
    assert result.sizes is not None
    assert sum(result.sizes.values()) == 0


@pytest.mark.parametrize(
    "head",
    [
        "snapshot_time:         1600000000.250000 (secs.usecs)",
        "snapshot_time:         1600000000.250000000 (secs.nsecs)",
        "snapshot_time:            1600000000.250000000 secs.nsecs",
        "snapshot_time             1600000000.250000000",
    ],
)
def test_the_snapshot_time_of_every_version(head: str) -> None:
    assert parse(render({"disk I/O size": {}}, head=head)).snapshot_us == 1600000000_250000


def test_the_start_of_counting_where_it_is_given() -> None:
    head = "snapshot_time: 1742378286.331 secs\nstart_time: 294.926985080 secs.nsecs\nelapsed_time: 1.4 secs.nsecs"
    assert parse(render({"disk I/O size": {}}, head=head)).start_us == 294_926985


def test_columns_without_a_bar_and_dos_line_ends_and_no_blank_lines() -> None:
    sections = {"disk I/O size": {4096: (1, 2)}, "pages per bulk r/w": {1: (3, 4)}}
    plain = parse(render(sections))
    for text in (
        render(sections, bar=""),
        render(sections).replace("\n", "\r\n"),
        render(sections).replace("\n\n", "\n"),
    ):
        assert (parse(text).sizes, parse(text).sets) == (plain.sizes, plain.sets)


def test_a_bad_row_refuses_its_section_and_no_other() -> None:
    text = render({"disk I/O size": {4096: (1, 2), 8192: (5, 5)}, "pages per bulk r/w": {1: (3, 4)}})
    result = parse_brw_stats(text.replace("8K:", "8K;").encode(), "oss/brw_stats", first_line=100)
    assert result.sizes is None
    assert result.sets == {"pages_per_bulk": {"read:1": 3, "write:1": 4}}
    assert [(problem.place, problem.line) for problem in result.problems] == [("oss/brw_stats", 105)]


def test_a_row_whose_label_is_damaged_does_not_pass_as_a_header() -> None:
    text = render({"disk I/O size": {4096: (1, 2), 8192: (5, 5), 16384: (1, 1)}})
    result = parse_brw_stats(text.replace("8K:", "x8K:").encode(), "brw_stats")
    assert result.sizes is None
    assert len(result.problems) == 1


def test_labels_must_rise() -> None:
    text = render({"disk I/O size": {4096: (1, 2), 8192: (5, 5)}}).replace("8K:", "4K:")
    assert "out of order" in parse_brw_stats(text.encode(), "brw_stats").problems[0].reason


def test_an_unknown_section_is_reported_and_the_known_ones_are_kept() -> None:
    text = render({"disk I/O size": {4096: (1, 2)}, "disk I/O colour": {1: (1, 1)}, "block maps msec": {1: (1, 0)}})
    result = parse_brw_stats(text.encode(), "brw_stats")
    assert [problem.line for problem in result.problems] == [8]
    assert result.sizes is not None
    assert result.sets == {"block_maps_ms": {"read:1": 1}}


def test_a_section_cut_by_the_end_of_the_file_is_refused() -> None:
    whole = render({"pages per bulk r/w": {1: (3, 4)}, "disk I/O size": {4096: (1, 2), 8192: (5, 5)}})
    row = whole.rindex("8K:")
    for cut in (whole[: row + 8], whole[: row - 1], whole[:-3]):
        result = parse_brw_stats(cut.encode(), "brw_stats")
        assert result.sizes is None
        assert result.sets == {"pages_per_bulk": {"read:1": 3, "write:1": 4}}
        assert len(result.problems) == 1


def test_without_final_newline_a_section_whose_shares_are_complete_is_whole() -> None:
    text = render({"disk I/O size": {4096: (1, 0), 8192: (5, 0)}})
    assert parse(text.rstrip("\n")).sizes == parse(text).sizes


@pytest.mark.parametrize("text", [b"", b"\n", b"snapshot_time: 1600000000.5 (secs.usecs)\n"])
def test_a_file_without_any_histogram_is_reported(text: bytes) -> None:
    result = parse_brw_stats(text, "brw_stats")
    assert len(result.problems) == 1
    assert result.sizes is None


counts = st.integers(0, 2**64 - 1) | st.integers(0, 9)
labels = st.sampled_from([0, *(2**power for power in range(31))])
sections = st.dictionaries(
    st.sampled_from(sorted(SECTIONS)), st.dictionaries(labels, st.tuples(counts, counts), max_size=8), min_size=1
)


@given(sections)
def test_what_is_printed_is_what_is_read(made: dict[str, Rows]) -> None:
    result = parse(render(made))
    for title, rows in made.items():
        if SECTIONS[title] == IN_FLIGHT:
            (name,) = {IN_FLIGHT, IN_FLIGHT_POW2} & result.sets.keys()
            assert result.sets[name] == expected(rows)
            continue
        if SECTIONS[title] != DISK_IO_SIZE:
            assert result.sets[SECTIONS[title]] == expected(rows)
            continue
        assert result.sizes is not None
        for side, direction in enumerate(DIRECTIONS):
            for size in SIZE_BINS:
                assert result.sizes[size_column(direction, size)] == rows.get(size, (0, 0))[side]
            outside = sum(row[side] for label, row in rows.items() if label not in SIZE_BINS)
            assert result.sizes[f"{direction}_ios_outside"] == outside


@given(sections, st.data())
def test_damage_is_reported_or_leaves_every_section_in_place(made: dict[str, Rows], data: st.DataObject) -> None:
    text = bytearray(render(made).encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + 1] = data.draw(st.binary(max_size=3))
    result = parse_brw_stats(bytes(text), "brw_stats")
    names = {IN_FLIGHT if name == IN_FLIGHT_POW2 else name for name in result.sets}
    names |= {DISK_IO_SIZE} if result.sizes is not None else set()
    assert result.problems or names == {SECTIONS[title] for title in made}
