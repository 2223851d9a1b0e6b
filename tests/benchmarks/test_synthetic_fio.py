"""fio job files of a model: its mix and sizes whatever the bounds, phases within the time, files within the space."""

from __future__ import annotations

import configparser
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from iolens.benchmarks.synthetic_fio import (
    LAYOUT,
    MOST_SILENT,
    WORKLOAD,
    TrafficBounds,
    fio_workload,
    saturating_text,
    write_fio,
)
from iolens.errors import UsageError
from iolens.units import KIB, MIB
from tests.benchmarks.made_models import READ_SIZES, WRITE_SIZES, model

BOUNDS = TrafficBounds(max_bytes=256 * MIB, max_s=20.0)


def jobs_of(path: Path) -> configparser.ConfigParser:
    """A job file as fio reads it: sections of options, lines that begin with `;` skipped."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=(";",), strict=True)
    parser.read_string(path.read_text("utf-8"))
    return parser


@pytest.mark.parametrize(
    "bounds", [BOUNDS, replace(BOUNDS, share=1.0), replace(BOUNDS, jobs=3), replace(BOUNDS, ssi=4.0)]
)
def test_the_mix_and_the_sizes_are_the_models(bounds: TrafficBounds) -> None:
    workload = fio_workload(model(), bounds)
    assert workload.read_requests_pct == pytest.approx(42.2, abs=0.5)
    for direction, sizes in (("read", READ_SIZES), ("write", WRITE_SIZES)):
        got = workload.size_shares(direction)
        assert {size: 100 * share for size, share in got.items()} == pytest.approx(
            {size: 100 * share for size, share in sizes}, abs=0.3
        )


def test_rates_too_small_for_every_process_are_made_good_in_the_next_phase() -> None:
    workload = fio_workload(model(), replace(BOUNDS, share=0.125 / 8, jobs=8))
    assert {rate % 8 for phase in workload.phases for rate in phase.rates.values()} == {0}
    exact = fio_workload(model(), replace(BOUNDS, share=0.125 / 8))
    for direction in ("read", "write"):
        asked = exact.offered(direction) / exact.phases[0].length_s
        assert abs(workload.offered(direction) / workload.phases[0].length_s - asked) <= 0.5 * 8 + 1


def test_phases_fit_the_time_and_do_not_overlap() -> None:
    workload = fio_workload(model(), BOUNDS)
    assert len(workload.phases) == 8
    ends = [phase.start_s + phase.length_s for phase in workload.phases]
    assert ends[-1] <= BOUNDS.max_s
    assert all(end <= phase.start_s + 1e-6 for end, phase in zip(ends, workload.phases[1:], strict=False))
    busy = sum(phase.length_s for phase in workload.phases)
    silent = min(workload.silent_share, MOST_SILENT)
    assert busy == pytest.approx((1 - silent) * BOUNDS.max_s, rel=0.01)


def test_some_phases_are_bursts_and_some_are_lulls() -> None:
    rates = sorted(sum(phase.rates.values()) for phase in fio_workload(model(), BOUNDS).phases)
    assert rates[-1] > 3 * rates[0]


def test_pauses_are_as_unequal_as_the_models_silences_and_absent_without_them() -> None:
    phases = fio_workload(model(), BOUNDS).phases
    pauses = [after.start_s - before.start_s - before.length_s for before, after in pairwise(phases)]
    assert max(pauses) > 2 * min(pauses) > 0
    phases = fio_workload(model(idle=False), BOUNDS).phases
    assert phases[-1].start_s + phases[-1].length_s == pytest.approx(BOUNDS.max_s, abs=0.01)


def test_rates_grow_with_the_scale_and_the_speed() -> None:
    item = fio_workload(model(), BOUNDS)
    for bounds, factor in (
        (replace(BOUNDS, share=0.5), 4),
        (replace(BOUNDS, ssi=3.0), 3),
        (replace(BOUNDS, jobs=4), 1),
    ):
        more = fio_workload(model(), bounds)
        assert more.offered("write") / item.offered("write") == pytest.approx(factor, rel=0.25)


def test_little_time_means_fewer_phases() -> None:
    assert len(fio_workload(model(), replace(BOUNDS, max_s=2.0)).phases) == 2
    assert len(fio_workload(model(), replace(BOUNDS, max_s=0.1)).phases) == 1


def test_nothing_left_to_ask_for_is_said() -> None:
    with pytest.raises(UsageError, match="name a larger --scale"):
        fio_workload(model(), replace(BOUNDS, share=1e-7))
    with pytest.raises(UsageError, match="--max-size 512 KiB is too small"):
        fio_workload(model(), replace(BOUNDS, max_bytes=512 * KIB))


def test_job_files_ask_for_what_the_workload_says(tmp_path: Path) -> None:
    bounds = replace(BOUNDS, jobs=2, log=True)
    assert [path.name for path in write_fio(model(), tmp_path / "new" / "fio", bounds)] == [LAYOUT, WORKLOAD]
    workload = fio_workload(model(), bounds)
    jobs = jobs_of(tmp_path / "new/fio" / WORKLOAD)
    shared = dict(jobs["global"])
    expected = {
        "directory": "${DIR}", "filename_format": "iolens.$jobnum", "direct": "1", "ioengine": "libaio", "numjobs": "2",
        "size": str(128 * MIB), "overwrite": "1", "norandommap": "1", "time_based": "1", "log_offset": "1",
    }  # fmt: skip
    assert {name: shared[name] for name in expected} == expected
    assert jobs.sections()[1:] == [phase.name for phase in workload.phases]
    seeds = {jobs[phase.name]["randseed"] for phase in workload.phases}
    assert len(seeds) == len(workload.phases)
    for phase in workload.phases:
        options = jobs[phase.name]
        assert options["rw"] == "randrw"
        assert [2 * int(rate) for rate in options["rate_iops"].split(",")] == [
            phase.rates[direction] for direction in ("read", "write")
        ]
        assert int(options["rwmixread"]) == pytest.approx(
            100 * phase.rates["read"] / sum(phase.rates.values()), abs=0.51
        )
        assert options["runtime"] == f"{round(1000 * phase.length_s)}ms"
        assert options["write_lat_log"] == phase.name
        for text, side in zip(options["bssplit"].split(","), ("read", "write"), strict=True):
            pairs = [pair.split("/") for pair in text.split(":")]
            assert {int(size): int(percent) for size, percent in pairs} == phase.percents[side]
            assert sum(int(percent) for _, percent in pairs) == 100
    layout = jobs_of(tmp_path / "new/fio" / LAYOUT)["layout"]
    assert (layout["rw"], layout["size"], layout["end_fsync"], layout["numjobs"]) == ("write", str(128 * MIB), "1", "2")
    assert layout["filename_format"] == shared["filename_format"]


def test_a_phase_of_one_direction_has_no_mix(tmp_path: Path) -> None:
    rare = model(read_requests_pct=0.05)
    write_fio(rare, tmp_path, replace(BOUNDS, share=0.125 / 8))
    jobs = jobs_of(tmp_path / WORKLOAD)
    alone = [jobs[name] for name in jobs.sections()[1:] if jobs[name]["rw"] == "randwrite"]
    assert alone
    for options in alone:
        assert "," not in options["rate_iops"] + options["bssplit"]
        assert "rwmixread" not in options


def test_buffered_load_waits_for_each_request(tmp_path: Path) -> None:
    write_fio(model(), tmp_path, replace(BOUNDS, direct=False))
    shared = jobs_of(tmp_path / WORKLOAD)["global"]
    assert (shared["direct"], shared["ioengine"], shared["iodepth"]) == ("0", "psync", "1")
    assert "log_offset" not in shared


def test_a_name_cannot_become_an_option(tmp_path: Path) -> None:
    write_fio(model(filesystem="lake\n[evil]\nexec_prerun=touch /tmp/x"), tmp_path, BOUNDS)
    for name in (LAYOUT, WORKLOAD):
        text = (tmp_path / name).read_text()
        assert not re.search(r"^(\[evil|exec)", text, re.MULTILINE)
    assert "exec_prerun" not in {key for section in jobs_of(tmp_path / WORKLOAD).values() for key in section}


def test_no_line_is_longer_than_fio_reads(tmp_path: Path) -> None:
    sizes = tuple((16 * KIB * (item + 1), 1 / 256) for item in range(256))
    write_fio(model(read_sizes=sizes, write_sizes=sizes), tmp_path, BOUNDS)
    jobs = jobs_of(tmp_path / WORKLOAD)
    for name in jobs.sections()[1:]:
        assert all(text.count(":") < 64 for text in jobs[name]["bssplit"].split(","))
    assert max(map(len, (tmp_path / WORKLOAD).read_text().splitlines())) < 4096


def test_a_saturating_job_has_one_size_and_no_rate() -> None:
    text = saturating_text("read", MIB, 2.5, 64 * MIB, BOUNDS)
    assert "rw=randread\n" in text
    assert f"bs={MIB}\n" in text
    assert "runtime=2500ms\n" in text
    assert "rate" not in text
