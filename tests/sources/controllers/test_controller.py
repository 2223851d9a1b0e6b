"""Controller exports in the manner of Spider: any columns, any units, streamed; sizes in bins of 16 KiB."""

from __future__ import annotations

import gzip
import sqlite3
import tracemalloc
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Problem
from iolens.sources import get_source, recognise
from iolens.sources.controllers import tables as controller_tables
from iolens.sources.controllers.layout import CUMULATIVE, DEFAULT, RATE, layout_of
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, samples_of, stored

BEGIN = datetime(2010, 6, 1, 12, tzinfo=UTC)
KIB = 1024
# A pair of exports as a site might keep them, and what it tells iolens of them.
SITE: Mapping[str, Any] = {
    "time": "sampled",
    "time_format": "%m/%d/%Y %H:%M:%S",
    "timezone": "America/New_York",
    "controller": "couplet",
    "columns": {
        "read_bytes": {"column": "rd_mbs", "unit": "MB/s"},
        "write_bytes": {"column": "wr_mbs", "unit": "MB/s"},
        "read_ops": {"column": "rd_iops", "unit": "/s"},
        "write_ops": {"column": "wr_iops", "unit": "/s"},
        "background_bytes": {"column": ["rebuild_mbs", "verify_mbs"], "unit": "MB/s"},
    },
    "sizes": {"read": "rd_{n}k", "write": "wr_{n}k", "label": "KiB", "kind": "cumulative"},
}
BANDWIDTH = """sampled,couplet,rd_mbs,wr_mbs,rd_iops,wr_iops,rebuild_mbs,verify_mbs,temperature
06/01/2010 08:00:00,ddn01,12.5,3.25,25,10,0,1.5,31
06/01/2010 08:00:00,ddn02,0,0,0,0,40,0,30
06/01/2010 08:00:02,ddn01,0.5,0,1,0,0,1.5,31
06/01/2010 08:00:02,ddn02,,7,,14,40,,30
"""
WIDE = """sampled,couplet,rd_16k,rd_512k,wr_16k,wr_4096k
06/01/2010 08:01:00,ddn01,10,5,50,0
06/01/2010 08:01:00,ddn02,0,0,7,1
06/01/2010 08:02:00,ddn01,14,5,80,0
06/01/2010 08:02:00,ddn02,0,0,9,1
"""
LONG = """time,controller,size_kib,direction,count
2010-06-01T12:01:00Z,ddn01,16,read,10
2010-06-01T12:01:00Z,ddn01,16,write,50
2010-06-01T12:01:00Z,ddn02,512,write,7
2010-06-01T12:02:00Z,ddn01,16,read,14
2010-06-01T12:02:00Z,ddn01,4096,read,3
2010-06-01T12:02:00Z,ddn01,16,write,80
2010-06-01T12:02:00Z,ddn02,512,write,9
"""
SPIDER = ReadOptions(filesystem="spider", settings=SITE)
PLAIN = ReadOptions(filesystem="spider")


def write(tmp_path: Path, text: str, name: str = "export.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def stamp(second: float) -> int:
    return int((BEGIN + timedelta(seconds=second)).timestamp() * 1e6)


def test_rates_become_bytes_of_the_interval(tmp_path: Path) -> None:
    items = items_of("controller", write(tmp_path, BANDWIDTH), SPIDER)
    assert problems_of(items) == []
    rows = rows_of(items, "target_io")
    assert [(row["time"], row["target"]) for row in rows] == [
        (stamp(0), "ddn01"), (stamp(0), "ddn02"), (stamp(2), "ddn01"), (stamp(2), "ddn02"),
    ]  # fmt: skip
    assert {(row["target_kind"], row["duration_s"], row["time"] - row["start"]) for row in rows} == {
        ("controller", 2.0, 2_000_000)
    }
    first, _, _, last = rows
    assert (first["read_bytes"], first["write_bytes"], first["read_ops"]) == (25_000_000, 6_500_000, 50)
    assert (last["read_bytes"], last["write_bytes"], last["read_ops"]) == (None, 14_000_000, None)


def test_background_is_apart_and_unknown_if_a_part_of_it_is(tmp_path: Path) -> None:
    rows = rows_of(items_of("controller", write(tmp_path, BANDWIDTH), SPIDER), "target_io")
    assert [row["background_bytes"] for row in rows] == [3_000_000, 80_000_000, 3_000_000, None]


def test_wide_bins_carry_their_upper_bound_in_bytes(tmp_path: Path) -> None:
    items = items_of("controller", write(tmp_path, WIDE), SPIDER)
    assert problems_of(items) == []
    first = samples_of(items, "target_histograms")[0]
    assert first == ("ddn01", stamp(60), {"read:16384": 10, "read:524288": 5, "write:16384": 50})


def test_long_bins_mean_the_same(tmp_path: Path) -> None:
    items = items_of("controller", write(tmp_path, LONG), PLAIN)
    assert problems_of(items) == []
    assert samples_of(items, "target_histograms")[2] == (
        "ddn01", stamp(120), {"read:16384": 14, "read:4194304": 3, "write:16384": 80},
    )  # fmt: skip


def test_sizes_in_the_store_are_what_was_added_and_zero_is_no_row(tmp_path: Path) -> None:
    store = tmp_path / "store"
    tally = ingest(store, "controller", [write(tmp_path, WIDE)], SPIDER)
    assert (tally.samples, tally.baselines) == (4, 2)
    assert stored(
        store, "spider", "target_histograms", "target", "histogram", "direction", "bin", "count", "target_kind"
    ) == [
        ("ddn01", "request_size", "read", 16 * KIB, 4, "controller"),
        ("ddn01", "request_size", "write", 16 * KIB, 30, "controller"),
        ("ddn02", "request_size", "write", 16 * KIB, 2, "controller"),
    ]


def test_a_reboot_in_the_sizes_counts_what_came_after(tmp_path: Path) -> None:
    text = WIDE + "06/01/2010 08:03:00,ddn01,2,0,1,0\n"
    tally = ingest(tmp_path / "store", "controller", [write(tmp_path, text)], SPIDER)
    assert tally.resets == 1
    after = stored(tmp_path / "store", "spider", "target_histograms", "time", "direction", "count", "after_reset")[-2:]
    assert [row[1:] for row in after] == [("read", 2, True), ("write", 1, True)]


def test_sizes_of_each_interval_are_rows_at_once(tmp_path: Path) -> None:
    settings = {**SITE, "sizes": {**SITE["sizes"], "kind": "per-interval"}}
    rows = rows_of(
        items_of("controller", write(tmp_path, WIDE), ReadOptions(filesystem="spider", settings=settings)),
        "target_histograms",
    )
    assert [(row["target"], row["direction"], row["bin"] // KIB, row["count"]) for row in rows[:4]] == [
        ("ddn01", "read", 16, 10), ("ddn01", "read", 512, 5), ("ddn01", "write", 16, 50), ("ddn02", "write", 16, 7),
    ]  # fmt: skip
    assert {row["duration_s"] for row in rows} == {60.0}


def test_bins_by_number(tmp_path: Path) -> None:
    """Bin k holds (16(k−1), 16k] KiB."""
    settings = {"sizes": {"size": "bin", "direction": "op", "count": "n", "label": "bin"}}
    rows = ("01:00Z,a,1,R,5", "01:00Z,a,256,W,6", "02:00Z,a,1,R,5")
    text = "time,controller,bin,op,n\n" + "".join(f"2010-06-01T12:{row}\n" for row in rows)
    samples = samples_of(
        items_of("controller", write(tmp_path, text), ReadOptions(filesystem="f", settings=settings)),
        "target_histograms",
    )
    assert samples[0][2] == {"read:16384": 5, "write:4194304": 6}


def test_directions_may_be_columns(tmp_path: Path) -> None:
    settings = {"sizes": {"size": "kib", "read": "reads", "write": "writes"}}
    text = "time,controller,kib,reads,writes\n2010-06-01T12:01:00Z,a,16,5,6\n2010-06-01T12:02:00Z,a,16,7,8\n"
    samples = samples_of(
        items_of("controller", write(tmp_path, text), ReadOptions(filesystem="f", settings=settings)),
        "target_histograms",
    )
    assert [sample[2] for sample in samples] == [
        {"read:16384": 5, "write:16384": 6},
        {"read:16384": 7, "write:16384": 8},
    ]


def test_cumulative_counters_stay_raw_and_exact(tmp_path: Path) -> None:
    settings = {"columns": {"write_bytes": {"column": "kib", "unit": "KiB", "kind": "cumulative"}}}
    big = 2**52 + 1  # times 1,024 it is beyond what a double holds
    text = f"time,controller,kib\n1275393600,a,{big}\n1275393602,a,{big + 3}\n1275393604,a,2\n"
    path = write(tmp_path, text)
    options = ReadOptions(filesystem="f", settings=settings)
    assert samples_of(items_of("controller", path, options), "target_io")[0] == (
        "a",
        stamp(0),
        {"write_bytes": big * 1024},
    )
    tally = ingest(tmp_path / "store", "controller", [path], options)
    assert tally.resets == 1
    assert stored(tmp_path / "store", "f", "target_io", "time", "write_bytes", "after_reset")[0][1:] == (3072, False)


def test_counts_since_the_last_sample_cover_a_gap(tmp_path: Path) -> None:
    settings = {"columns": {"read_ops": {"column": "ops", "kind": "per-interval"}}}
    text = "time,controller,ops\n" + "".join(f"{1275393600 + second},a,{second + 1}\n" for second in (0, 2, 4, 10))
    rows = rows_of(
        items_of("controller", write(tmp_path, text), ReadOptions(filesystem="f", settings=settings)), "target_io"
    )
    assert [(row["duration_s"], row["read_ops"]) for row in rows] == [(2.0, 1), (2.0, 3), (2.0, 5), (6.0, 11)]


@pytest.mark.parametrize(
    "column", ["1275393600", "1275393600000", "1275393600.0", "2010-06-01T12:00:00Z", "2010-06-01 07:00:00-05:00"]
)
def test_times_in_many_forms(tmp_path: Path, column: str) -> None:
    text = f"time,controller,read_bytes_per_s\n{column},a,8\n"
    (row,) = rows_of(
        items_of("controller", write(tmp_path, text), ReadOptions(filesystem="f", interval_s=2.0)), "target_io"
    )
    assert (row["time"], row["read_bytes"]) == (stamp(0), 16)


def test_local_times_need_a_zone_and_survive_the_end_of_summer(tmp_path: Path) -> None:
    heading = "time,controller,read_bytes_per_s\n"
    local = heading + "".join(
        f"2010-11-07 0{hour}:{minute:02d}:00,a,1\n" for hour in (0, 1, 1, 2) for minute in range(60)
    )
    path = write(tmp_path, local)
    with pytest.raises(InputError, match="--timezone"):
        items_of("controller", path, PLAIN)
    rows = rows_of(items_of("controller", path, ReadOptions(filesystem="f", timezone="America/New_York")), "target_io")
    times = [row["time"] for row in rows]
    assert len(set(times)) == 240
    assert max(times) - min(times) == 239 * 60_000_000


def test_the_default_layout_is_recognised(tmp_path: Path) -> None:
    text = "time,controller,read_bytes_per_s,write_bytes_per_s\n1275393600,a,1,2\n1275393602,a,1,2\n"
    assert recognise(write(tmp_path, text)).name == "controller"
    assert recognise(write(tmp_path, LONG)).name == "controller"
    assert not get_source("controller").recognises(tmp_path / "x", BANDWIDTH.encode())
    rows = rows_of(items_of("controller", write(tmp_path, text), PLAIN), "target_io")
    assert [(row["read_bytes"], row["write_bytes"]) for row in rows] == [(2, 4)] * 2
    assert (DEFAULT.kind, DEFAULT.sizes.kind if DEFAULT.sizes else "") == (RATE, CUMULATIVE)


def test_one_controller_without_a_column_for_its_name(tmp_path: Path) -> None:
    settings = {"name": "ddn07", "columns": {"read_ops": {"column": "ops", "unit": "/s"}}, "delimiter": ";"}
    text = "time;ops\n1275393600;3\n1275393602;4\n"
    rows = rows_of(
        items_of("controller", write(tmp_path, text), ReadOptions(filesystem="f", settings=settings)), "target_io"
    )
    assert [(row["target"], row["read_ops"]) for row in rows] == [("ddn07", 6), ("ddn07", 8)]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("12.5", "twelve", "rd_mbs: 'twelve' is not a number: 1 cells"),
        ("12.5", "-12.5", "1 values are negative"),
        ("06/01/2010 08:00:02,ddn01", "someday,ddn01", "sampled: 'someday' is not a time: 1 rows"),
        ("06/01/2010 08:00:02,ddn01", "06/31/2010 08:00:02,ddn01", "is not a time"),
        ("08:00:02,ddn01", "08:00:02,", "no controller"),
        (",1.5,31\n", ",1.5\n", "rows have not 9 cells"),
    ],
)
def test_a_bad_cell_costs_itself(tmp_path: Path, old: str, new: str, reason: str) -> None:
    items = items_of("controller", write(tmp_path, BANDWIDTH.replace(old, new, 1)), SPIDER)
    assert any(reason in problem for problem in problems_of(items)), problems_of(items)
    rows = rows_of(items, "target_io")
    assert len(rows) >= 3
    assert not any(row["read_bytes"] == 0 and row["target"] == "ddn01" for row in rows)


def test_a_quotation_that_does_not_end_costs_its_line_alone(tmp_path: Path) -> None:
    """Its end was looked for in all that followed, and every row after it was gone."""
    lines = BANDWIDTH.splitlines(keepends=True)
    damaged = "".join([*lines[:2], '06/01/2010 08:00:00,"ddn03,1,1,1,1,0,0,30\n', *lines[2:]])
    items = items_of("controller", write(tmp_path, damaged), SPIDER)
    whole = items_of("controller", write(tmp_path, BANDWIDTH), SPIDER)
    assert rows_of(items, "target_io") == rows_of(whole, "target_io")
    assert ["1 lines with a quotation that does not end" in problem for problem in problems_of(items)] == [True]


def test_a_direction_that_is_neither_is_reported(tmp_path: Path) -> None:
    items = items_of("controller", write(tmp_path, LONG + "2010-06-01T12:02:00Z,ddn02,512,verify,9\n"), PLAIN)
    assert problems_of(items) == ["direction 'verify' is neither read nor write: 1 rows left out"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"colums": {}}, "unknown key colums"),
        ({"columns": {"reads": {"column": "a", "unit": "/s"}}}, "unknown key columns.reads"),
        ({"columns": {"read_bytes": "a"}}, "columns.read_bytes = 'a'"),
        ({"columns": {"read_bytes": {"unit": "MB/s"}}}, "columns.read_bytes.column = None"),
        ({"columns": {"read_bytes": {"column": "a", "unit": "furlongs/s"}}}, "unit = 'furlongs/s'"),
        ({"columns": {"read_bytes": {"column": "a", "unit": "MB/min"}}}, "unit = 'MB/min'"),
        ({"columns": {"read_bytes": {"column": "a", "unit": "MB"}}}, "nor a unit per second"),
        (
            {"columns": {"read_bytes": {"column": "a", "unit": "MB/s", "kind": "cumulative"}}},
            "does not go with its unit",
        ),
        ({"columns": {"read_ops": {"column": "a", "unit": "MB/s"}}}, "unit = 'MB/s'"),
        ({"columns": {"read_ops": {"column": "a", "unit": "/s", "kind": "speed"}}}, "kind = 'speed'"),
        (
            {
                "columns": {
                    "read_ops": {"column": "a", "unit": "/s"},
                    "write_ops": {"column": "b", "kind": "cumulative"},
                }
            },
            "different kinds",
        ),
        ({"sizes": {"read": "rd"}}, "neither size nor patterns"),
        ({"sizes": {"size": "s", "kind": "rate"}}, "sizes.kind = 'rate'"),
        ({"sizes": {"size": "s", "label": "inch"}}, "sizes.label = 'inch'"),
        ({"interval": "0s"}, "interval = '0s'"),
        ({"interval": 2}, "interval = 2"),
        ({"delimiter": ";;"}, "delimiter = ';;'"),
        ({"name": "a", "controller": "b"}, "both controller and name"),
    ],
)
def test_the_configuration_is_checked(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=r"\[sources\.controller\]") as caught:
        layout_of(settings)
    assert reason in str(caught.value)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column wr_mbs"):
        items_of("controller", write(tmp_path, BANDWIDTH.replace("wr_mbs", "wr")), SPIDER)
    with pytest.raises(InputError, match="none of the columns"):
        items_of("controller", write(tmp_path, "colour,shape\nred,round\n"), SPIDER)


def test_bandwidth_and_operations_in_two_files_are_refused(tmp_path: Path) -> None:
    """Bandwidth in one and operations in the other would be two rows of one interval: the first file is taken."""
    item = write(tmp_path, "time,controller,read_bytes_per_s\n1275393600,a,1\n", "one.csv")
    other = write(tmp_path, "time,controller,read_ops_per_s\n1275393600,a,1\n", "other.csv")
    timed = ReadOptions(filesystem="spider", interval_s=2.0)
    taken, refused = get_source("controller").captures([item, other], timed)
    assert len(rows_of(list(taken.items()), "target_io")) == 1
    with pytest.raises(InputError, match="join them first"):
        list(refused.items())
    more = write(tmp_path, "time,controller,read_bytes_per_s,write_bytes_per_s\n1275393602,a,1,1\n", "more.csv")
    assert len(rows_of(items_of("controller", [item, more], timed), "target_io")) == 2  # a later export may tell more


def test_gzip_crlf_cut_and_nothing_twice(tmp_path: Path) -> None:
    path, store = tmp_path / "export.csv.gz", tmp_path / "store"
    path.write_bytes(gzip.compress(BANDWIDTH.replace("\n", "\r\n").encode()))
    assert ingest(store, "controller", [path], SPIDER).rows["target_io"] == 4
    again = ingest(store, "controller", [path], SPIDER)
    assert (again.already_present, dict(again.rows)) == (1, {})
    long = BANDWIDTH + "".join(
        f"06/01/2010 08:{m:02d}:{s:02d},ddn01,1,2,3,4,5,6,7\n" for m in range(1, 60) for s in range(0, 60, 2)
    )
    path.write_bytes(gzip.compress(long.encode())[:-200])
    items = items_of("controller", path, SPIDER)
    assert any(isinstance(item, Problem) for item in items)


def test_a_window_is_respected(tmp_path: Path) -> None:
    options = ReadOptions(filesystem="spider", settings=SITE, since=BEGIN + timedelta(seconds=1), interval_s=2.0)
    rows = rows_of(items_of("controller", write(tmp_path, BANDWIDTH), options), "target_io")
    assert {row["time"] for row in rows} == {stamp(2)}


def database(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE couplet_io (sampled TEXT, couplet TEXT, rd_mbs REAL, wr_mbs REAL)")
        connection.execute("CREATE TABLE couplet_sizes (sampled TEXT, couplet TEXT, kib INT, op TEXT, n INT)")
        io = [(f"2010-06-01 08:00:0{second}", name, 1.5, 0.25) for second in (0, 2, 4) for name in ("ddn01", "ddn02")]
        connection.executemany("INSERT INTO couplet_io VALUES (?, ?, ?, ?)", io)
        sizes = [
            (f"2010-06-01 08:0{minute}:00", "ddn01", 16, op, 10 * minute) for minute in (1, 2) for op in ("r", "w")
        ]
        connection.executemany("INSERT INTO couplet_sizes VALUES (?, ?, ?, ?, ?)", sizes)
    connection.close()
    return path


def test_sqlite_tables_as_configured(tmp_path: Path) -> None:
    settings = {
        "time": "sampled", "controller": "couplet", "timezone": "America/New_York", "table": "couplet_io",
        "columns": {name: SITE["columns"][name] for name in ("read_bytes", "write_bytes")},
        "sizes": {"table": "couplet_sizes", "size": "kib", "direction": "op", "count": "n"},
    }  # fmt: skip
    options = ReadOptions(filesystem="spider", settings=settings)
    path = database(tmp_path / "spider.sqlite")
    items = items_of("controller", path, options)
    assert problems_of(items) == []
    rows = rows_of(items, "target_io")
    assert (len(rows), rows[0]["read_bytes"], rows[0]["time"]) == (6, 3_000_000, stamp(0))
    assert samples_of(items, "target_histograms")[1] == ("ddn01", stamp(120), {"read:16384": 20, "write:16384": 20})
    tally = ingest(tmp_path / "store", "controller", [path], options)
    assert tally.rows == {"target_io": 6, "target_histograms": 2}
    assert ingest(tmp_path / "store", "controller", [path], options).already_present == 2
    with pytest.raises(InputError, match="no table 'elsewhere'"):
        items_of("controller", path, ReadOptions(filesystem="spider", settings={**settings, "table": "elsewhere"}))
    with pytest.raises(InputError, match="no table is configured"):
        items_of("controller", path, PLAIN)


def test_pieces_of_any_size_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = WIDE + "".join(f"06/01/2010 08:{m:02d}:00,ddn01,{m * 20},6,90,0\n" for m in range(3, 50))
    long = LONG + "".join(
        f"2010-06-01T12:{m:02d}:00Z,ddn01,{16 * k},{d},{m * 100 + k}\n"
        for m in range(3, 50)
        for k in (1, 2, 3)
        for d in "rw"
    )
    files = [(write(tmp_path, wide, "wide.csv"), SPIDER), (write(tmp_path, long, "long.csv"), PLAIN)]
    whole = [samples_of(items_of("controller", path, options), "target_histograms") for path, options in files]
    monkeypatch.setattr(controller_tables, "BLOCK_BYTES", 300)
    assert [samples_of(items_of("controller", path, options), "target_histograms") for path, options in files] == whole
    assert len(whole[1]) == 4 + 47


def test_a_large_file_streams(tmp_path: Path) -> None:
    """Memory stays bounded by the piece, not by the file."""
    path = tmp_path / "large.csv"
    with path.open("w") as stream:
        stream.write("time,controller,read_bytes_per_s,write_bytes_per_s,read_ops_per_s,write_ops_per_s\n")
        for second in range(0, 24_000, 2):
            stream.write("".join(f"{1275393600 + second},ddn{n:02d},{second}.5,123456.25,10,20\n" for n in range(48)))
    assert path.stat().st_size > 20_000_000
    (capture,) = get_source("controller").captures([path], PLAIN)
    tracemalloc.start()
    rows = sum(len(item) for item in capture.items() if not isinstance(item, Problem))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == 12_000 * 48
    assert peak < 400_000_000
