"""What a file system holds: against files counted one by one, the papers' figures, and what sources leave open."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.contents.analysis import Contents, contents
from iolens.errors import UsageError
from iolens.sources.contents.inode_counts import DAY_S, InodeCounts
from iolens.store.frames import FrameSelection
from tests.analyses.capacity_rows import reading
from tests.analyses.capacity_rows import table_of as capacity_table
from tests.analyses.contents_rows import DAY_US, JANUARY_US, MARCH_US, row, scanned, selection, table_of, total

NOW_S = MARCH_US // 1_000_000
FILES = [  # owner, project, size, allocated, days since access, days since modification
    ("ada", "climate", 0, 0, 0, 1),
    ("ada", "climate", 100, 4096, 1, 10),
    ("ada", "earth", 70_000, 69_632, 5, 40),
    ("bob", "earth", 100_000, 102_400, 70, 70),
    ("bob", "earth", 120_000, 122_880, 80, 400),
    ("bob", None, 5_000_000, 1_000_000, 4000, 5000),
]


def counted() -> list[dict[str, Any]]:
    counts = InodeCounts(MARCH_US)
    for owner, project, size, allocated, used, changed in FILES:
        times = {"atimes_s": [NOW_S - used * DAY_S], "mtimes_s": [NOW_S - changed * DAY_S]}
        counts.add([counts.code(owner, project, "file")], [size], [allocated], **times)
    for width in (3, 5):
        code = counts.code("ada", "climate", "dir")
        counts.add([code], [4096], [4096], atimes_s=[NOW_S], mtimes_s=[NOW_S])
        counts.add_widths([code], [width])
    (rows,) = counts.rows("scratch", "whole")
    places = range(rows.count)  # type: ignore[union-attr]
    columns = rows.columns  # type: ignore[union-attr]
    return [
        {"source": "scan"} | {name: col[n] if isinstance(col, list) else col for name, col in columns.items()}
        for n in places
    ]


@pytest.fixture(scope="module")
def one_scan() -> Contents:
    return contents(selection(counted()), without_projects=["earth"])


def test_files_and_bytes_are_those_of_files_alone(one_scan: Contents) -> None:
    assert (one_scan.files, one_scan.bytes) == (6, sum(size for _, _, size, *_ in FILES))
    assert (one_scan.directories, one_scan.inodes) == (2, 8)
    assert one_scan.allocated_bytes == 1_299_008
    assert one_scan.allocated_pct == pytest.approx(100 * 1_299_008 / 5_290_100)  # a sparse file weighs most
    assert (one_scan.time, one_scan.source, one_scan.scan) == (datetime(2010, 3, 28, tzinfo=UTC), "scan", "whole")
    assert one_scan.min_bytes is None


def test_the_distribution_of_sizes_adds_up(one_scan: Contents) -> None:
    points = {item.size_bytes: (item.files, item.bytes) for item in one_scan.size_cdf}
    assert points == {0: (1, 0), 128: (2, 100), 131_072: (5, 290_100), 8_388_608: (6, 5_290_100)}
    assert [round(item.files_pct, 1) for item in one_scan.size_cdf] == [16.7, 33.3, 83.3, 100.0]
    assert one_scan.size_cdf[2].bytes_pct == pytest.approx(100 * 290_100 / 5_290_100)
    assert one_scan.size_cdf[2].bytes_min_pct is None  # bytes are reported: there is nothing to bound
    summary = one_scan.sizes
    assert (summary.median_bytes, summary.p95_bytes, summary.largest_bytes) == (131_072, 8_388_608, 8_388_608)
    assert (summary.most_common_above_bytes, summary.most_common_bytes) == (65_536, 131_072)
    assert summary.most_common_files == 3
    assert summary.mean_bytes == pytest.approx(5_290_100 / 6)


def test_ages_are_those_of_files_alone_and_count_back_from_the_scan(one_scan: Contents) -> None:
    used = {item.age_s: (item.files, item.bytes) for item in one_scan.atime_cdf}
    assert used[0] == (1, 0)
    assert used[5 * DAY_S] == (3, 70_100)
    assert used[84 * DAY_S] == (5, 290_100)
    assert used[None] == (6, 5_290_100)
    changed = {item.age_s: item.files for item in one_scan.mtime_cdf}
    assert changed == {DAY_S: 1, 10 * DAY_S: 2, 42 * DAY_S: 3, 84 * DAY_S: 4, 540 * DAY_S: 5, None: 6}


def test_who_holds_what(one_scan: Contents) -> None:
    projects = [(item.project, item.files, item.bytes, item.directories) for item in one_scan.by_project]
    assert projects == [(None, 1, 5_000_000, 0), ("earth", 3, 290_000, 0), ("climate", 2, 100, 2)]
    owners = [(item.owner, item.files, item.bytes, item.inodes) for item in one_scan.by_owner]
    assert owners == [("bob", 3, 5_220_000, 3), ("ada", 3, 70_100, 5)]
    assert [(item.inode_type, item.inodes, item.bytes) for item in one_scan.by_type] == [
        ("file", 6, 5_290_100), ("dir", 2, 8192),
    ]  # fmt: skip
    assert sum(item.files_pct or 0 for item in one_scan.by_project) == pytest.approx(100)
    cover = one_scan.coverage
    assert cover is not None
    assert (cover.owners, cover.projects, cover.bytes_told) == (2, 2, "by size")
    assert cover.with_project_pct == pytest.approx(100 * 5 / 6)
    assert (cover.with_owner_pct, cover.with_size_pct, cover.with_atime_pct) == (100, 100, 100)


def test_widths_of_directories(one_scan: Contents) -> None:
    widths = one_scan.widths
    assert widths is not None
    assert (widths.directories, widths.median_entries, widths.widest_entries, widths.mean_entries) == (2, 4, 8, 4.0)
    assert [(item.entries, item.directories) for item in widths.width_cdf] == [(4, 1), (8, 2)]


def test_any_project_removed_is_shown_beside_the_whole(one_scan: Contents) -> None:
    """Figs. 8 and 9: those without a project stay, and the bins are those of the whole."""
    rest = one_scan.without
    assert rest is not None
    assert (rest.projects, rest.files, rest.bytes, rest.files_pct) == (["earth"], 3, 5_000_100, 50.0)
    assert [item.size_bytes for item in rest.size_cdf] == [item.size_bytes for item in one_scan.size_cdf]
    assert [item.files for item in rest.size_cdf] == [1, 2, 2, 3]
    assert rest.sizes.median_bytes == 128
    assert [item.age_s for item in rest.atime_cdf] == [item.age_s for item in one_scan.atime_cdf]
    assert rest.atime_cdf[-1].files == 3


def test_one_project_or_one_owner_alone() -> None:
    earth = contents(selection(counted()), projects=["earth"])
    assert (earth.files, earth.bytes, earth.directories, earth.projects) == (3, 290_000, None, ["earth"])
    bob = contents(selection(counted()), owners=["bob"])
    assert (bob.files, [item.owner for item in bob.by_owner]) == (3, ["bob"])
    both = contents(selection(counted()), owners=["bob"], projects=["earth"])
    assert both.files == 2


def test_shares_up_to_a_size() -> None:
    result = contents(selection(counted()), at_most_bytes=[128, 100_000]).at_most
    assert (result[0].files_pct, result[0].files_min_pct) == (pytest.approx(100 / 3), pytest.approx(100 / 3))
    inside = result[1]  # three files are in a bin that goes on to 128 KiB
    assert inside.files_pct is None
    assert (inside.files_min_pct, inside.files_max_pct) == (pytest.approx(100 / 3), pytest.approx(500 / 6))
    assert inside.bytes_pct is None
    assert inside.bytes_min_pct == pytest.approx(100 * 100 / 5_290_100)


def test_shares_up_to_an_age() -> None:
    result = contents(selection(counted()), within_s=[30 * DAY_S, 64 * DAY_S, 72 * DAY_S]).within
    month, inside, later = result[:3]
    assert (month.clock, month.files_pct, month.files_max_pct) == ("atime", 50.0, 50.0)
    assert month.bytes_pct == pytest.approx(100 * 70_100 / 5_290_100)
    assert (inside.files_pct, inside.files_min_pct, inside.files_max_pct) == (None, 50.0, pytest.approx(500 / 6))
    assert (inside.bytes_pct, inside.bytes_min_pct) == (None, month.bytes_pct)
    assert later.files_min_pct == 50.0  # both files of the bin are within 84 days, one of them within 72
    assert [item.clock for item in result[3:]] == ["mtime"] * 3
    assert result[3].files_pct == pytest.approx(100 / 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"projects": ["erth"]}, "no scan here names the project 'erth'; there are: climate, earth"),
        ({"without_projects": ["erth"]}, "no scan here names the project 'erth'"),
        ({"owners": ["eve"]}, "no scan here names the owner 'eve'; there are: ada, bob"),
        ({"projects": ["earth"], "without_projects": ["earth"]}, "cannot be chosen and removed at once"),
        ({"threshold_files": 0}, "above 0"),
        ({"threshold_files": float("inf")}, "below 2⁶³"),
        ({"top": 0}, "at least one"),
        ({"compare": "soon"}, "not a time"),
        ({"compare": "2009-12-31"}, "there is no scan up to 2009-12-31T23:59:59.999999Z"),
    ],
)
def test_questions_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        contents(selection(counted()), **options)
    assert says in str(error.value)


# Table V of paper D: two scans of which only totals are known.

TERA = 10**12
TABLE_V = [
    total(12_300_000, 274_400_000_000_000, project="EarthScience", time=JANUARY_US),
    total(83_900_000, 1_140 * TERA - 274_400_000_000_000, project=None, time=JANUARY_US),
    total(96_200_000, 295_100_000_000_000, project="EarthScience"),
    total(95_200_000, 1_280 * TERA - 295_100_000_000_000, project=None),
]


def test_table_v() -> None:
    result = contents(selection(TABLE_V)).comparison
    assert result is not None
    assert result.days == 62
    whole = result.total
    assert round(whole.bytes.change_pct or 0, 1) == 12.3
    assert round(whole.files.change_pct or 0, 1) == 99.0
    earth = result.by_project[0]
    assert earth.project == "EarthScience"
    assert round(earth.bytes.change_pct or 0, 1) == 7.5
    assert round(earth.files.change_pct or 0, 1) == 682.1
    assert round(earth.files.share_pct or 0) == 88  # of the additional files
    assert round(earth.bytes.share_pct or 0) == 15  # of the new data


def test_a_billion_files_in_september_2011() -> None:
    """Section 4.2, at the same rate; the dates between those of its two file systems."""
    result = contents(selection(TABLE_V), threshold_files=1e9)
    files = result.projections[0]
    assert (files.unit, files.scans, files.days, files.limit, files.limit_origin) == ("files", 2, 62, 10**9, "given")
    line = files.lines[0]
    assert (line.limit_state, line.limit_date) == ("projected", date(2011, 9, 5))
    assert line.per_day == pytest.approx(95_200_000 / 62)
    assert line.per_year_pct == pytest.approx(100 * 365.25 * 95_200_000 / 62 / 191_400_000)
    assert line.limit_ci95 is None
    assert any("two scans, 62.0 days apart" in note for note in result.notes)


def test_totals_alone_have_no_distribution_and_say_so() -> None:
    result = contents(selection(TABLE_V), without_projects=["EarthScience"])
    assert (result.files, result.bytes, result.size_cdf, result.at_most) == (191_400_000, 1_280 * TERA, [], [])
    assert "the source tells totals only: there is no distribution of sizes" in result.notes
    assert result.directories is None  # not reported, which is not none
    assert result.sizes.mean_bytes == pytest.approx(1_280 * TERA / 191_400_000)
    assert result.without is not None
    assert result.without.files == 95_200_000
    assert result.comparison is not None
    assert result.comparison.without is not None
    assert result.comparison.without.files.change == 95_200_000 - 83_900_000
    assert result.coverage is not None
    assert result.coverage.bytes_told == "in total"


def test_a_rough_histogram_without_bytes_gives_bounds() -> None:
    rows = [row("size", None, 0, 5), row("size", 0, 10, 10), row("size", 10, 20, 10), row("size", 20, 40, 0)]
    result = contents(selection(rows))
    assert (result.files, result.bytes) == (25, None)
    assert (result.min_bytes, result.avg_bytes, result.max_bytes) == (10 + 110, 210, 300)
    assert [item.size_bytes for item in result.size_cdf] == [0, 10, 20]  # the empty bin says nothing
    middle = result.size_cdf[1]
    assert (middle.bytes, middle.bytes_pct) == (None, None)
    assert middle.bytes_min_pct == pytest.approx(100 * 10 / 210)
    assert middle.bytes_avg_pct == pytest.approx(100 * 55 / 210)
    assert middle.bytes_max_pct == pytest.approx(100 * 100 / 210)
    assert any(note.startswith("the source does not tell bytes") for note in result.notes)


def test_counts_by_size_and_bytes_in_total() -> None:
    """What Robinhood's accounts tell: how many files of each size, and the bytes of each owner."""
    rows = [
        row("size", 0, 31, 10, owner="ada"), row("size", 31, 1023, 1, owner="ada"), row("size", 0, 31, 4, owner="bob"),
        total(11, 500, owner="ada"), total(4, 60, owner="bob"),
        total(3, 12_288, owner="ada", inode_type="dir"),
    ]  # fmt: skip
    result = contents(selection(rows))
    assert (result.files, result.bytes, result.directories, result.inodes) == (15, 560, 3, 18)
    assert [(item.owner, item.files, item.bytes) for item in result.by_owner] == [("ada", 11, 500), ("bob", 4, 60)]
    assert [(item.files, item.bytes) for item in result.size_cdf] == [(14, None), (15, None)]
    small = result.size_cdf[0]
    assert small.bytes_min_pct == pytest.approx(100 * 14 / 560)  # at least a byte each
    assert small.bytes_max_pct == pytest.approx(100 * 14 * 31 / 560)
    assert any("only in total" in note for note in result.notes)


def test_totals_that_disagree_with_the_histogram_are_reported() -> None:
    result = contents(selection([row("size", 0, 1, 10), total(12, 500)]))
    assert "the totals count 12 files, the histogram of sizes 10" in result.notes


def test_totals_without_counts_take_them_from_the_sizes() -> None:
    result = contents(selection([row("size", 0, 64, 10), total(None, 500)]))
    assert (result.files, result.bytes, result.history[0].files) == (10, 500, 10)


# Several scans.


def month(number: int, files: int, **more: Any) -> dict[str, Any]:
    return row("size", 0, 4096, files, time=MARCH_US + number * 30 * DAY_US, bytes=files * 100, **more)


def test_the_scan_to_compare_with() -> None:
    rows = [month(0, 100), month(1, 200), month(2, 300), month(3, 450)]
    chosen = selection(rows)

    def before(compare: Any) -> int | None:
        result = contents(chosen, compare=compare).comparison
        return result.total.files.before if result is not None else None

    assert before("first") == 100
    assert before("previous") == 300
    assert before(None) is None
    assert before("2010-04-27") == 200  # the day of the second
    assert before("2010-04-26") == 100
    assert before(datetime(2010, 5, 1, tzinfo=UTC)) == 200
    assert before("2020-01-01") == 300  # the newest is not compared with itself
    assert contents(selection(rows[:1])).comparison is None


def test_scans_of_other_sources_are_left_out_and_named() -> None:
    rows = [month(0, 100, source="find"), month(1, 200), month(2, 300, source="find"), month(3, 400)]
    result = contents(selection(rows))
    assert (result.files, result.samples, result.source) == (400, 2, "scan")
    assert result.comparison is not None
    assert result.comparison.total.files.before == 200
    assert "scans of other sources are left out: 2 of find; --source chooses one" in result.notes
    asked = contents(selection(rows), compare="2010-03-28").comparison  # none of the same source is that old
    assert asked is not None
    assert (asked.earlier.source, asked.total.files.before) == ("find", 100)


def test_a_project_that_came_and_one_that_went() -> None:
    rows = [month(0, 100, project="old"), month(0, 10, project="same"), month(1, 50, project="new"),
            month(1, 10, project="same")]  # fmt: skip
    result = contents(selection(rows)).comparison
    assert result is not None
    changes = [(item.project, item.files.before, item.files.after, item.files.change_pct) for item in result.by_project]
    assert changes == [("new", 0, 50, None), ("same", 10, 10, 0.0), ("old", 100, 0, -100.0)]
    assert result.by_project[0].files.share_pct is None  # the whole did not grow


def test_projects_that_one_scan_does_not_tell_are_not_compared() -> None:
    result = contents(selection([month(0, 100), month(1, 50, project="new")])).comparison
    assert result is not None
    assert result.by_project == []
    assert [item.owner for item in result.by_owner] == ["ada"]


def test_many_scans_have_an_interval_and_a_robust_line() -> None:
    counts = [1000 + 100 * n + (37 * n) % 11 for n in range(12)]
    result = contents(selection([month(n, files) for n, files in enumerate(counts)]), threshold_files=5000)
    assert (result.samples, [item.files for item in result.history]) == (12, counts)
    files, inodes = result.projections
    assert [line.method for line in files.lines] == ["linear", "theil-sen"]
    for line in files.lines:
        assert line.per_day == pytest.approx(100 / 30, rel=0.02)
        assert line.per_day_ci95 is not None
        assert line.per_day_ci95[0] < 100 / 30 < line.per_day_ci95[1]
        assert line.limit_date is not None
        assert line.limit_ci95 is not None
        assert line.expected[0].low is not None
    assert (inodes.unit, inodes.limit, inodes.lines[0].limit_state) == ("inodes", None, "unknown")
    assert not any("two scans" in note for note in result.notes)


def test_inodes_are_held_against_the_limit_of_the_file_system() -> None:
    rows = [month(0, 100), month(1, 200)]
    limits = [
        {**item, "time": MARCH_US + 40 * DAY_US + hour * DAY_US // 24, "total_inodes": 700 + hour, "used_inodes": 1}
        for hour in range(3)
        for target in ("MDT0000", "MDT0001")
        for item in reading(0, {target: 5}, kind="mdt")
    ]
    limits += reading(0, {"OST0000": 5}, total_inodes=9, used_inodes=1)
    frames = {"contents": table_of(rows), "target_capacity": capacity_table(limits)}
    inodes = contents(FrameSelection(frames, "scratch")).projections[1]
    assert (inodes.limit, inodes.limit_origin) == (1404, "target_capacity")
    assert inodes.lines[0].limit_state == "projected"
    part = contents(FrameSelection(frames, "scratch"), owners=["ada"]).projections[1]
    assert part.limit is None  # a part of the inodes says nothing of the whole's limit


def test_the_newest_scan_of_the_window_counts() -> None:
    rows = [month(0, 100), month(1, 200), month(2, 300)]
    result = contents(selection(rows, window=(None, datetime(2010, 5, 1, tzinfo=UTC))))
    assert (result.files, result.samples) == (200, 2)
    assert result.window_end == datetime(2010, 5, 1, tzinfo=UTC)
    nothing = contents(selection(rows, window=(datetime(2011, 1, 1, tzinfo=UTC), None)))
    assert (nothing.files, nothing.samples, nothing.size_cdf, nothing.time) == (None, 0, [], None)
    assert contents(FrameSelection({}, "scratch")).samples == 0


def test_names_of_scans_of_one_time_are_distinguished() -> None:
    chosen = selection([month(0, 50, scan="b"), month(1, 100, scan="a"), month(1, 7, scan="b")])
    result = contents(chosen)
    assert (result.files, result.scan, result.samples) == (100, "a", 2)
    assert "of the same time are left out: b; --scan chooses one" in result.notes
    named = contents(chosen, scan="b")
    assert (named.files, [item.files for item in named.history]) == (7, [50, 7])
    assert not any("--scan" in note for note in named.notes)
    with pytest.raises(UsageError, match="no scan here is called 'c'; there are: a, b"):
        contents(chosen, scan="c")


def test_a_scan_of_many_holders_adds_up() -> None:
    holders = {(f"owner{n % 7}", f"project{n % 3}" if n % 5 else None): 50 + n for n in range(21)}
    result = contents(selection(scanned(MARCH_US, holders)))
    assert result.files == sum(holders.values())
    assert (
        sum(item.files or 0 for item in result.by_owner)
        == sum(item.files or 0 for item in result.by_project)
        == result.files
    )
    assert sum(item.bytes or 0 for item in result.by_owner) == result.bytes == result.size_cdf[-1].bytes
    assert result.atime_cdf[-1].files == result.mtime_cdf[-1].files == result.files
    assert result.history[-1].bytes == result.bytes


# Authority.


def test_95_per_cent_of_the_files_in_about_5_per_cent_of_the_bytes(shared_data: Path) -> None:
    """Cori's scratch, January 2019, by a histogram that tells no bytes."""
    path = shared_data / "fsstats" / "cscratch_20190115_sizebytype_hist.csv"
    heading, *lines = path.read_text("utf-8").splitlines()
    kinds = {"num_files": "file", "num_dirs": "dir", "num_symlinks": "symlink"}
    rows, below = [], None
    for line in filter(None, lines):
        cells = dict(zip(heading.split(","), map(int, line.split(",")), strict=True))
        end = cells["bin_size"]
        rows += [row("size", below, end, cells[name], inode_type=kind) for name, kind in kinds.items()]
        below = end
    result = contents(selection(rows))
    assert (result.files, result.directories) == (1_179_109_385, 108_701_768)
    assert result.sizes.p95_bytes == 32 << 20
    reached = next(item for item in result.size_cdf if item.files_pct >= 95)
    assert reached.bytes_avg_pct == pytest.approx(5.25, abs=0.01)
    assert reached.bytes_min_pct == pytest.approx(2.70, abs=0.01)
    assert reached.bytes_max_pct == pytest.approx(9.98, abs=0.01)
