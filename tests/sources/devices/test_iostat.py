"""iostat's reports in every layout: what they measure, when, and which are left out."""

from __future__ import annotations

import gzip
import json
import pickle
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Rows
from iolens.sources import recognise
from iolens.sources.devices.iostat import SOURCE
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store

S = 1_000_000
T0 = datetime(2026, 3, 4, 10, 0, 0, tzinfo=UTC)
AT = ReadOptions(at=T0, interval_s=1)
UTC_TIMES = ReadOptions(timezone="UTC")
BANNER = "Linux 6.1.0 (oss1) \t03/04/26 \t_x86_64_\t(8 CPU)\n"
NEW = ("Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await"
       " wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\n")  # fmt: skip
OLD = ("Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await r_await w_await"
       "  svctm  %util\n")  # fmt: skip


def new(name: str, reads: float = 10, writes: float = 4, util: float = 12.5) -> str:
    """A line of `-x`: reads of 8 kB and 1.5 ms, writes of 64 kB and 3 ms."""
    return (f"{name:16}{reads:7.2f} {reads * 8:9.2f} 0.00 0.00 1.50 8.00 {writes:7.2f} {writes * 64:9.2f} 0.00 0.00"
            f" 3.00 64.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.00 0.75 {util:6.2f}\n")  # fmt: skip


def report(*lines: str, stamp: str = "", head: str = NEW, cpu: bool = True) -> str:
    processor = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n  1.00 0.00 1.00 0.00 0.00 98.00\n\n"
    return (f"{stamp}\n" if stamp else "") + (processor if cpu else "") + head + "".join(lines) + "\n\n"


def since_boot(stamp: str = "") -> str:
    return report(new("sda", 431.84, 264.02, 10.19), stamp=stamp)


def captured(path: Path, options: ReadOptions) -> list[Item]:
    (capture,) = SOURCE.captures([path], options)
    return list(pickle.loads(pickle.dumps(capture)).items())


def items(tmp_path: Path, text: str, options: ReadOptions = AT) -> list[Item]:
    path = tmp_path / "iostat.txt"
    path.write_bytes(text.encode())
    return captured(path, options)


def rows(results: list[Item]) -> list[dict[str, Any]]:
    out = []
    for item in results:
        if isinstance(item, Rows):
            for number in range(len(item)):
                out.append({k: v[number] if isinstance(v, list) else v for k, v in item.columns.items()})
    return out


def problems(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Problem) and not isinstance(item, Note)]


def notes(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Note)]


def refusal(tmp_path: Path, text: str, options: ReadOptions) -> str:
    with pytest.raises(InputError) as refused:
        items(tmp_path, text, options)
    return str(refused.value)


class TestMeasures:
    def test_one_report_of_today(self, tmp_path: Path) -> None:
        (row,) = rows(items(tmp_path, BANNER + since_boot() + report(new("sda"))))
        start = int(T0.timestamp()) * S
        assert row == {
            "time": start + S, "start": start, "duration_s": 1.0,
            "filesystem": "oss1", "target": "oss1:sda", "target_kind": "device",
            "read_ops": 10, "read_bytes": 80 * 1024, "read_wait_us": 15_000,
            "write_ops": 4, "write_bytes": 256 * 1024, "write_wait_us": 12_000,
            "busy_us": 125_000, "queue_us": 750_000,
        }  # fmt: skip

    def test_the_columns_of_ten_years_ago(self, tmp_path: Path) -> None:
        line = "sda 0.00 1.00 10.00 4.00 80.00 256.00 48.00 0.75 1.93 1.50 3.00 0.50 12.50\n"
        boot = line.replace(" 10.00 ", " 10.37 ").replace(" 4.00 ", " 0.92 ")
        (row,) = rows(items(tmp_path, BANNER + report(boot, head=OLD) + report(line, head=OLD)))
        assert (row["read_ops"], row["read_bytes"], row["read_wait_us"]) == (10, 81920, 15_000)
        assert (row["write_ops"], row["write_bytes"], row["write_wait_us"]) == (4, 262144, 12_000)
        assert (row["busy_us"], row["queue_us"]) == (125_000, 750_000)

    @pytest.mark.parametrize(
        ("columns", "values", "read", "written"),
        [
            ("rMB/s wMB/s", "2.50 1.00", 5 << 19, 1 << 20),
            ("rsec/s wsec/s", "16.00 2.00", 8192, 1024),
            ("Blk_read/s Blk_wrtn/s Blk_read Blk_wrtn", "16.00 2.00 16 2", 8192, 1024),
            ("MB_read/s MB_wrtn/s MB_read MB_wrtn", "0.01 1.00 0 1", 10240, 1 << 20),  # the rate tells more
        ],
    )
    def test_other_units(self, tmp_path: Path, columns: str, values: str, read: int, written: int) -> None:
        text = report(f"sda {values}\n", head=f"Device: {columns}\n", cpu=False)
        (row,) = rows(items(tmp_path, BANNER + text * 2))
        assert (row["read_bytes"], row["write_bytes"]) == (read, written)
        assert row["read_ops"] is row["write_wait_us"] is row["busy_us"] is None

    def test_plain_reports_tell_bytes_exactly_and_the_interval(self, tmp_path: Path) -> None:
        head = "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd\n"
        lines = ["sda 9.00 3000.00 400.00 0.00 9000000 1200000 0\n"]
        lines += ["sda 9.90 1000.00 200.00 0.00 30010 6002 0\n"] * 3
        text = BANNER + "".join(report(line, head=head, cpu=False) for line in lines)
        result = items(tmp_path, text, ReadOptions(at=T0))
        assert [row["read_bytes"] for row in rows(result)] == [30010 * 1024] * 3
        assert [row["duration_s"] for row in rows(result)] == [30.01] * 3
        assert [row["time"] - T0.timestamp() * S for row in rows(result)] == [30 * S, 60 * S, 90 * S]
        assert notes(result) == ["this report is the average since boot: left out"]
        assert rows(result)[0]["read_ops"] is None

    def test_the_short_form_does_not_tell_reads_from_writes(self, tmp_path: Path) -> None:
        text = report("sda 168.00 535804.00 2020.00 35.12 3189.31 5.90 25.20\n",
                      head="Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\n")  # fmt: skip
        (row,) = rows(items(tmp_path, BANNER + text * 2))
        assert row["read_bytes"] is row["write_bytes"] is row["read_ops"] is None
        assert (row["busy_us"], row["queue_us"]) == (252_000, 5_900_000)

    def test_human_readable_tables(self, tmp_path: Path) -> None:
        text = (
            "     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n"
            "    4.00     16.0k     0.00   0.0%   43.75     4.0k sda\n"
            "    0.00      0.0k     0.00   0.0%    0.00     0.0k a-very-long-name\n\n"
            "     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n"
            "  163.00    523.2M  2020.00  92.5%   35.12     3.2M sda\n"
            "    1.00      1.5G  2020.00  92.5%   35.12     3.2M a-very-long-name\n\n"
            "     f/s f_await  aqu-sz  %util Device\n"
            "    4.00    0.00    5.90  25.2% sda\n"
            "    4.00    0.00    5.90  25.2% a-very-long-name\n\n\n"
        )
        settings = ReadOptions(at=T0, interval_s=1, devices=DeviceRule(include=("*",)))
        boot = text.replace(" 4.00 ", " 4.37 ").replace(" 163.00 ", " 99.91 ")
        first, second = rows(items(tmp_path, BANNER + boot + text, settings))
        assert (first["read_bytes"], first["write_bytes"]) == (16384, round(523.2 * 2**20 / 512) * 512)
        assert (first["busy_us"], first["write_wait_us"]) == (252_000, 163 * 35120)
        assert (second["target"], second["write_bytes"]) == ("oss1:a-very-long-name", 3 << 29)

    def test_a_decimal_comma(self, tmp_path: Path) -> None:
        text = (BANNER + since_boot() + report(new("sda", 10.5)).replace(".", ",")).replace("avg-cpu:,", "avg-cpu:")
        (row,) = rows(items(tmp_path, text, ReadOptions(at=T0, interval_s=2)))
        assert (row["read_ops"], row["read_bytes"]) == (21, 168 * 1024)

    def test_a_long_name_had_a_line_of_its_own(self, tmp_path: Path) -> None:
        text = "Device:            tps   kB_read/s   kB_wrtn/s    kB_read    kB_wrtn\n"
        text += (
            "cciss/c0d0-with-a-long-name\n                  5.00      2000.00      1000.00       2000       1000\n\n"
        )
        (row, _) = rows(items(tmp_path, BANNER + text * 2))
        assert (row["target"], row["read_bytes"]) == ("oss1:cciss/c0d0-with-a-long-name", 2000 * 1024)

    def test_groups_are_left_to_their_members(self, tmp_path: Path) -> None:
        result = items(tmp_path, BANNER + since_boot() + report(new("sda"), new(" ALL")))
        assert [row["target"] for row in rows(result)] == ["oss1:sda"]

    def test_the_interval_it_divided_by_is_found_where_counts_tell(self, tmp_path: Path) -> None:
        """21 reads and 2 writes in 1.01 s print as 20.79 and 1.98."""
        result = rows(items(tmp_path, BANNER + since_boot() + report(new("sda", 21 / 1.01, 2 / 1.01))))
        assert (result[0]["duration_s"], result[0]["read_ops"], result[0]["write_ops"]) == (1.01, 21, 2)
        minute = ReadOptions(at=T0, interval_s=60)
        result = rows(items(tmp_path, BANNER + since_boot() + report(new("sda", 21 / 60, 2 / 60)), minute))
        assert (result[0]["duration_s"], result[0]["read_ops"]) == (60.0, 21)


class TestDevices:
    def test_partitions_and_stacked_devices_are_left_out_and_said(self, tmp_path: Path) -> None:
        result = items(tmp_path, BANNER + since_boot() + report(*map(new, ("sda", "sda1", "sdb", "dm-0", "md127"))))
        assert [row["target"] for row in rows(result)] == ["oss1:sda", "oss1:sdb"]
        assert notes(result)[1] == (
            "3 devices left out by rule: dm-0 (lies over other devices), md127 (lies over other devices), "
            "sda1 (partition of sda)"
        )

    def test_the_rule_is_the_configurations(self, tmp_path: Path) -> None:
        rule = ReadOptions(at=T0, interval_s=1, devices=DeviceRule(include=("dm-*",)), filesystem="scratch")
        result = rows(items(tmp_path, BANNER + since_boot() + report(new("sda"), new("dm-0")), rule))
        assert [(row["filesystem"], row["target"]) for row in result] == [("scratch", "oss1:dm-0")]

    def test_a_disk_that_is_idle_now_still_has_its_partitions(self, tmp_path: Path) -> None:
        """With -z idle devices are missing from a report."""
        text = BANNER + since_boot() + report(new("sda"), new("sda1")) + report(new("sda1"))
        assert [row["target"] for row in rows(items(tmp_path, text))] == ["oss1:sda"]


class TestFirstReport:
    def test_it_is_the_average_since_boot_unless_something_tells_otherwise(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot() + report(new("sda"))
        result = items(tmp_path, text, ReadOptions(at=T0, interval_s=60))
        assert (len(rows(result)), notes(result)) == (1, ["this report is the average since boot: left out"])

    def test_a_second_blank_line_tells_that_y_left_it_out(self, tmp_path: Path) -> None:
        result = items(tmp_path, BANNER + "\n\n" + report(new("sda")) * 2)
        assert (len(rows(result)), notes(result)) == (2, [])

    def test_whole_counts_tell_that_it_is_an_interval(self, tmp_path: Path) -> None:
        assert (
            len(rows(items(tmp_path, BANNER + "\n" + report(new("sda", 21 / 1.01, 2 / 1.01)) * 2))) == 1
        )  # two: too few
        three = report(new("sda", 21 / 1.01, 2 / 1.01), new("sdb", 17 / 1.01, 9 / 1.01))
        assert len(rows(items(tmp_path, BANNER + "\n" + three * 2))) == 4

    def test_totals_tell_the_time_it_covers(self, tmp_path: Path) -> None:
        head = "Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn\n"
        text = BANNER + "\n" + report("sda 1.00 2000.00 1.00 2000 1\n", head=head, cpu=False) * 3
        assert len(rows(items(tmp_path, text))) == 3
        text = BANNER + "\n\n" + report("sda 1.00 2000.00 1.00 7200000 1\n", head=head, cpu=False) * 2
        assert len(rows(items(tmp_path, text))) == 1

    @pytest.mark.parametrize(("said", "count"), [(True, 1), (False, 2)])
    def test_the_configuration_has_the_last_word(self, tmp_path: Path, said: bool, count: int) -> None:
        options = ReadOptions(at=T0, interval_s=60, settings={"since_boot_first": said})
        for gap in ("\n", "\n\n"):
            assert len(rows(items(tmp_path, BANNER + gap + report(new("sda")) * 2, options))) == count

    def test_a_single_report_is_nothing_but_an_average_since_boot(self, tmp_path: Path) -> None:
        result = items(tmp_path, BANNER + "\n" + since_boot(), ReadOptions(at=T0, interval_s=60))
        assert (rows(result), len(notes(result))) == ([], 1)

    def test_every_start_of_iostat_has_its_own(self, tmp_path: Path) -> None:
        item = BANNER + "\n" + since_boot("03/04/26 10:00:00") + report(new("sda"), stamp="03/04/26 10:01:00")
        result = items(tmp_path, item + item.replace(" 10:", " 11:"), UTC_TIMES)
        assert [row["time"] - T0.timestamp() * S for row in rows(result)] == [60 * S, 3660 * S]
        assert len(notes(result)) == 2


class TestTimes:
    @pytest.mark.parametrize(
        "stamps",
        [
            ["2026-03-04T10:00:00+0000", "2026-03-04T10:00:05+0000"],
            ["2026-03-04T11:00:00+0100", "2026-03-04T11:00:05+0100"],
            ["03/04/26 10:00:00", "03/04/26 10:00:05"],  # C
            ["03/04/2026 10:00:00 AM", "03/04/2026 10:00:05 AM"],  # en_US
            ["04.03.2026 10:00:00", "04.03.2026 10:00:05"],  # de_DE
            ["2026-03-04 10:00:00", "2026-03-04 10:00:05"],
            ["Time: 10:00:00 AM", "Time: 10:00:05 AM"],  # sysstat 9: the day is in the first line
        ],
    )
    def test_forms_of_time(self, tmp_path: Path, stamps: list[str]) -> None:
        text = BANNER + "\n" + since_boot(stamps[0]) + report(new("sda"), stamp=stamps[1])
        (row,) = rows(items(tmp_path, text, UTC_TIMES))
        assert row["time"] == int(T0.timestamp() + 5) * S
        assert (row["start"], row["duration_s"]) == (int(T0.timestamp()) * S, 5.0)

    def test_the_zone_is_the_users(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot("03/04/26 11:00:00") + report(new("sda"), stamp="03/04/26 11:00:05")
        assert "name no zone; expected --timezone" in refusal(tmp_path, text, ReadOptions())
        (row,) = rows(items(tmp_path, text, ReadOptions(timezone="Europe/Berlin")))
        assert row["start"] == T0.timestamp() * S
        (row,) = rows(items(tmp_path, text, ReadOptions(zones={"oss1": "Europe/Berlin"})))
        assert row["start"] == T0.timestamp() * S
        assert "no time zone is called 'Mars'" in refusal(tmp_path, text, ReadOptions(timezone="Mars"))

    def test_day_first_is_proved_by_a_date_or_configured(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot("04/03/26 10:00:00") + report(new("sda"), stamp="04/03/26 10:01:00")
        april = rows(items(tmp_path, text, UTC_TIMES))[0]["time"]
        assert datetime.fromtimestamp(april / S, UTC) == datetime(2026, 4, 3, 10, 1, tzinfo=UTC)
        said = ReadOptions(timezone="UTC", settings={"date_order": "dmy"})
        assert rows(items(tmp_path, text, said))[0]["time"] == (T0.timestamp() + 60) * S
        proved = text + "".join(report(new("sda"), stamp=f"{day}/03/26 10:02:00") for day in ("04", "13"))
        assert rows(items(tmp_path, proved, UTC_TIMES))[0]["time"] == (T0.timestamp() + 60) * S
        assert rows(items(tmp_path, proved, UTC_TIMES))[2]["duration_s"] == 9 * 86400

    def test_an_hour_that_comes_twice(self, tmp_path: Path) -> None:
        stamps = [f"25.10.2026 0{hour}:{minute}0:00" for hour in (2, 2, 3) for minute in range(6)]
        text = BANNER + "\n\n" + "".join(report(new("sda"), stamp=stamp) for stamp in stamps)
        times = [row["time"] // S for row in rows(items(tmp_path, text, ReadOptions(timezone="Europe/Berlin")))]
        assert times == list(range(times[0], times[0] + 600 * 18, 600))

    def test_midnight_passes_where_only_the_time_is_reported(self, tmp_path: Path) -> None:
        stamps = ["Time: 11:59:00 PM", "Time: 12:00:00 AM", "Time: 12:01:00 AM"]
        text = BANNER + "\n\n" + "".join(report(new("sda"), stamp=stamp) for stamp in stamps)
        times = [row["time"] // S for row in rows(items(tmp_path, text, UTC_TIMES))]
        assert [time - times[0] for time in times] == [0, 60, 120]
        assert datetime.fromtimestamp(times[1], UTC) == datetime(2026, 3, 5, tzinfo=UTC)

    def test_a_stretch_the_stamps_show_to_be_longer(self, tmp_path: Path) -> None:
        """Stamps are whole seconds, so a second more or less is their rounding; an hour is an hour."""
        stamps = ["10:00:00", "10:00:10", "10:00:21", "10:00:30", "11:00:30", "11:00:40"]
        text = BANNER + "\n" + "".join(
            report(new("sda", 0, 5), stamp=f"2026-03-04T{stamp}Z") for stamp in stamps
        )  # fmt: skip
        result = rows(items(tmp_path, text, ReadOptions()))
        assert [row["duration_s"] for row in result] == [10.0, 10.0, 10.0, 3600.0, 10.0]
        assert [row["write_ops"] for row in result] == [50, 50, 50, 18_000, 50]
        assert all(row["start"] == before["time"] for before, row in pairwise(result))

    def test_two_reports_on_one_second_are_both_kept(self, tmp_path: Path) -> None:
        stamps = [f"2026-03-04T10:00:{second:02}Z" for second in (0, 1, 2, 2, 3, 4)]
        text = BANNER + "\n\n" + "".join(report(new("sda"), stamp=stamp) for stamp in stamps)
        times = [row["time"] for row in rows(items(tmp_path, text, ReadOptions()))]
        assert len(set(times)) == 6

    def test_nothing_tells_the_time(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot() + report(new("sda")) * 2
        assert "expected --at, when iostat was started" in refusal(tmp_path, text, ReadOptions(interval_s=1))
        assert "expected --interval" in refusal(tmp_path, text, ReadOptions(at=T0))

    def test_a_window(self, tmp_path: Path) -> None:
        stamps = [f"2026-03-04T10:0{minute}:00Z" for minute in range(6)]
        text = BANNER + "\n\n" + "".join(report(new("sda"), stamp=stamp) for stamp in stamps)
        window = ReadOptions(since=T0.replace(minute=2), until=T0.replace(minute=4))
        assert [row["time"] // S - T0.timestamp() for row in rows(items(tmp_path, text, window))] == [120, 180]

    @pytest.mark.parametrize("settings", [{"since_boot_first": 1}, {"date_order": "ymd"}, {"hosts": "x"}])
    def test_settings_that_make_no_sense(self, tmp_path: Path, settings: dict[str, object]) -> None:
        assert "sources.iostat." in refusal(tmp_path, BANNER, ReadOptions(settings=settings))


def as_json(*reports: dict[str, Any]) -> str:
    host = {"nodename": "oss1", "sysname": "Linux", "date": "03/04/26", "statistics": list(reports)}
    return json.dumps({"sysstat": {"hosts": [host]}}, indent=1)


def json_report(second: int | None = None, **columns: float) -> dict[str, Any]:
    stamp = {} if second is None else {"timestamp": f"2026-03-04T10:00:{second:02}Z"}
    disk = {"disk_device": "sda", "r/s": 10.0, "rkB/s": 80.0, "r_await": 1.5, "aqu-sz": 0.75, "util": 12.5, **columns}
    return {**stamp, "avg-cpu": {"user": 1.0}, "disk": [disk]}


class TestJson:
    def test_reports(self, tmp_path: Path) -> None:
        result = items(
            tmp_path, as_json(json_report(0, **{"r/s": 431.84}), json_report(5), json_report(10)), ReadOptions()
        )
        assert [row["read_ops"] for row in rows(result)] == [50, 50]
        assert (rows(result)[0]["busy_us"], rows(result)[0]["read_wait_us"]) == (625_000, 75_000)
        assert rows(result)[0]["write_bytes"] is None

    @pytest.mark.parametrize("keep", [0.35, 0.6, 0.8, 0.99])
    def test_cut_off_in_the_middle_every_complete_report_is_kept(self, tmp_path: Path, keep: float) -> None:
        text = as_json(*(json_report(second) for second in range(0, 50, 5)))
        cut = text[: round(len(text) * keep)]
        whole = cut.count('"util": 12.5\n')  # reports whose last value is there; the last may lack its brackets
        result = items(tmp_path, cut, ReadOptions())
        assert whole - 2 <= len(rows(result)) <= whole - 1
        assert len(problems(result)) == 1 or "unclosed" in notes(result)[-1]

    def test_documents_one_after_the_other(self, tmp_path: Path) -> None:
        text = as_json(json_report(0), json_report(5)) + "\n" + as_json(json_report(20), json_report(25))
        assert [row["time"] // S - T0.timestamp() for row in rows(items(tmp_path, text, ReadOptions()))] == [5, 25]

    def test_a_disk_without_a_name_is_a_problem(self, tmp_path: Path) -> None:
        bad = {"timestamp": "2026-03-04T10:00:10Z", "disk": [{"r/s": 1}, 5]}
        result = items(tmp_path, as_json(json_report(0), json_report(5), bad), ReadOptions())
        assert len(problems(result)) == 2

    def test_without_times_the_user_tells(self, tmp_path: Path) -> None:
        result = rows(items(tmp_path, as_json(json_report(), json_report(), json_report()), AT))
        assert [row["time"] // S - T0.timestamp() for row in result] == [1, 2]


class TestDamage:
    def test_processor_reports_hold_nothing_for_us_and_say_so(self, tmp_path: Path) -> None:
        cpu = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n  1.00 0.00 1.00 0.00 0.00 98.00\n\n"
        result = items(tmp_path, BANNER + "\n" + cpu * 3)
        assert (len(result), problems(result)) == (
            1, ["no device in it: expected device reports, as of `iostat -d` or `iostat -x`"],
        )  # fmt: skip

    @pytest.mark.parametrize("text", ["", "\n", "rubbish\n", "\x00\x01\x02", "{", '{"sysstat": {"hosts": ['])
    def test_files_without_a_report(self, tmp_path: Path, text: str) -> None:
        assert len(problems(items(tmp_path, text))) >= 1

    def test_carriage_returns(self, tmp_path: Path) -> None:
        text = (BANNER + "\n" + since_boot() + report(new("sda"))).replace("\n", "\r\n")
        assert [row["read_ops"] for row in rows(items(tmp_path, text))] == [10]

    def test_a_last_line_that_is_cut_is_left_out(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot() + report(new("sda"), new("sdb"))
        result = items(tmp_path, text.rstrip()[:-3])
        assert [row["target"] for row in rows(result)] == ["oss1:sda"]
        assert problems(result) == ["the file ends within this line: left out"]

    def test_a_human_report_that_lacks_tables_is_left_out(self, tmp_path: Path) -> None:
        text = "r/s rkB/s Device\n4.00 16.0k sda\n\nw/s wkB/s Device\n4.00 16.0k sda\n\n\n"
        result = items(tmp_path, BANNER + "\n" + text * 3 + text.partition("\n\n")[0] + "\n")
        assert len(rows(result)) == 2
        assert problems(result) == ["the file ends within this report: left out"]

    def test_missing_columns_and_words_are_reported(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot() + report(new("sda"), "sdb 1.00 2.00\n", new("sdc").replace(" 1.50", " nan"))
        result = items(tmp_path, text)
        assert [row["target"] for row in rows(result)] == ["oss1:sda"]
        assert problems(result) == ["3 columns, expected 23", "r_await 'nan' is not a number"]

    def test_without_the_first_line_the_server_is_named_by_the_user(self, tmp_path: Path) -> None:
        text = since_boot() + report(new("sda"))
        assert "expected --target SERVER" in refusal(tmp_path, text, AT)
        named = ReadOptions(at=T0, interval_s=1, target="oss9")
        assert [row["target"] for row in rows(items(tmp_path, text, named))] == ["oss9:sda"]

    def test_huge_numbers(self, tmp_path: Path) -> None:
        result = items(tmp_path, BANNER + "\n" + since_boot() + report(new("sda", 10.0**12)))
        assert rows(result)[0]["read_bytes"] == 8192 * 10**12


class TestRecognition:
    def test_text_json_and_packed(self, tmp_path: Path) -> None:
        text = BANNER + "\n" + since_boot() + report(new("sda"))
        (tmp_path / "a").write_text(text)
        (tmp_path / "b.gz").write_bytes(gzip.compress(text.encode()))
        (tmp_path / "c.json").write_text(as_json(json_report(0)))
        assert [recognise(tmp_path / name).name for name in ("a", "b.gz", "c.json")] == ["iostat"] * 3
        assert [row["read_ops"] for row in rows(captured(tmp_path / "b.gz", AT))] == [10]

    @pytest.mark.parametrize(
        "text",
        [BANNER + "\n10:00:00 AM     CPU     %user\n10:10:00 AM     all      1.00\n",  # sar
         '{"sysstat": {"hosts": [{"statistics": [{"cpu-load": []}]}]}}'],
    )  # fmt: skip
    def test_other_programs_of_sysstat(self, text: str) -> None:
        assert not SOURCE.recognises(Path("x"), text.encode())


def test_twice_adds_nothing_and_a_file_may_grow(tmp_path: Path) -> None:
    path, store = tmp_path / "iostat.txt", Store(tmp_path / "store")
    parts = [report(new("sda", n), stamp=f"2026-03-04T10:{n:02}:00Z") for n in range(1, 21)]
    counts = []
    for many in (10, 10, 20):
        path.write_text(BANNER + "\n\n" + "".join(parts[:many]))
        counts.append(store.ingest(SOURCE.captures([path], ReadOptions()), "iostat").rows["target_io"])
    assert counts == [10, 0, 10]
    result = store.tables.load("target_io").to_pyarrow_table().to_pylist()  # type: ignore[union-attr]
    assert sum(row["read_ops"] for row in result) == 60 * sum(range(1, 21))


class TestRealCaptures:
    """Bounds of one load that several processes of iostat watched at once."""

    def captured(self, shared_data: Path, name: str, options: ReadOptions = UTC_TIMES) -> list[Item]:
        return captured(shared_data / "iostat" / name, options)

    def test_text_and_json_of_one_load_agree(self, shared_data: Path) -> None:
        text = rows(self.captured(shared_data, "x_y_t_1s_mixed_load.txt"))
        plain = rows(self.captured(shared_data, "x_t_1s_mixed_load.json"))
        assert (len(text), len(plain)) == (22, 21)  # JSON: 22 less the average since boot, which must not count
        assert max(row["read_bytes"] for row in plain) < 900 * 2**20
        for column in ("read_bytes", "write_bytes", "busy_us"):
            item, other = (sum(row[column] for row in result[:21]) for result in (text, plain))
            assert item == pytest.approx(other, rel=0.01)

    def test_iso_times_carry_their_zone(self, shared_data: Path) -> None:
        iso = rows(self.captured(shared_data, "x_y_t_iso_timestamps.txt", ReadOptions(timezone="Asia/Tokyo")))
        text = rows(self.captured(shared_data, "x_y_t_1s_mixed_load.txt"))
        assert [row["time"] for row in iso] == [row["time"] for row in text[:10]]
        assert sum(row["write_bytes"] for row in iso) == pytest.approx(
            sum(row["write_bytes"] for row in text[:10]), rel=0.001
        )

    def test_totals_of_the_plain_report_are_its_own(self, shared_data: Path) -> None:
        result = rows(self.captured(shared_data, "d_k_1s.txt", ReadOptions(at=T0)))
        lines = (shared_data / "iostat/d_k_1s.txt").read_text().splitlines()
        printed = [line.split() for line in lines if line.startswith("vda")][1:]
        assert [row["read_bytes"] for row in result] == [int(words[5]) * 1024 for words in printed]
        assert [row["write_bytes"] for row in result] == [int(words[6]) * 1024 for words in printed]

    def test_human_and_short_forms(self, shared_data: Path) -> None:
        human = rows(self.captured(shared_data, "x_y_human.txt", AT))
        assert len(human) == 5
        assert human[0]["write_bytes"] == pytest.approx(535784 * 1024, rel=1e-3)
        short = rows(self.captured(shared_data, "x_short_width.txt", AT))
        assert [row["busy_us"] for row in short] == [252_000, 0, 84_000, 416_000, 104_000]

    def test_a_killed_json_keeps_its_reports(self, shared_data: Path) -> None:
        result = self.captured(shared_data, "truncated_sigkill.json")
        assert [row["write_ops"] for row in rows(result)] == [26886, 30928]
        assert len(notes(result)) == 2
        assert problems(result) == []

    def test_the_processor_report(self, shared_data: Path) -> None:
        assert len(problems(self.captured(shared_data, "cpu_only.txt", ReadOptions()))) == 1

    def test_all_are_recognised(self, shared_data: Path) -> None:
        assert {recognise(path).name for path in (shared_data / "iostat").iterdir()} == {"iostat"}
