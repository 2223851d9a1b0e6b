"""Eqs. 2–4 of paper P, the strict numbers, classes, larger drives, and their uncertainty."""

from __future__ import annotations

from dataclasses import fields
from datetime import date, timedelta

import numpy as np
import pytest

from iolens.analyses.demand import DailyWrites, DayWrites, SystemCapacity
from iolens.analyses.drives.readings import Drive, DriveReadings
from iolens.errors import UsageError
from iolens.plans.cases import Input, between, statistic, value, worst
from iolens.plans.endurance import (
    CaseInputs,
    EndurancePlan,
    Provision,
    file_system_writes,
    on_larger_drive,
    over_provisioning,
    plan_endurance,
    write_amplification,
)
from iolens.plans.metadata import StripeLayout
from iolens.views.render.json_text import to_plain


def given(name: str, number: float | tuple[float, float] | Input) -> Input:
    if isinstance(number, Input):
        return number
    return between(name, *number, "test") if isinstance(number, tuple) else value(name, number, "test")


def case(data: int = 10, parity: int = 2, **more: float | tuple[float, float] | Input) -> CaseInputs:
    known = {"ssi": 3.0, "fswpd": 0.024, "waf": 2.68, **more}
    return CaseInputs(layout=StripeLayout(data, parity), **{name: given(name, item) for name, item in known.items()})


LOW, HIGH = case(), case(8, 2, ssi=4.0, waf=3.17)


def days(*written: float, covered: float = 100.0) -> DailyWrites:
    result = [DayWrites(date(2019, 1, 1) + timedelta(days=n), item, covered) for n, item in enumerate(written)]
    return DailyWrites("scratch", result, ["ost"], ["made-up"])


def measured(seed: int = 1) -> EndurancePlan:
    random = np.random.default_rng(seed)
    writes = file_system_writes(days(*random.pareto(2.0, 200) * 24.0), SystemCapacity(1000, "option --capacity"))
    assert writes.daily is not None
    fswpd = statistic("fswpd", "mean", writes.daily.tolist(), "days")
    waf = statistic("waf", "median", random.normal(2.7, 0.3, 50).tolist(), "drives")
    return plan_endurance([case(fswpd=fswpd, waf=waf)], writes=writes, filesystem="scratch")


def test_published_endurance() -> None:
    low, high = plan_endurance([LOW, HIGH]).cases
    assert round(low.dwpd, 2) == 0.23
    assert round(high.dwpd, 2) == 0.38
    assert low.dwpd == pytest.approx(3 * 12 / 10 * 2.68 * 0.024)
    assert (low.low_dwpd, low.high_dwpd, low.ci95) == (low.dwpd, low.dwpd, None)


def test_one_dwpd_suffices_as_published() -> None:
    plan = plan_endurance([LOW, HIGH])
    assert [item.class_dwpd for item in plan.cases] == [0.3, 1.0]
    assert [item.strict_class_dwpd for item in plan.cases] == [0.3, 0.3]
    verdict = {item.class_dwpd: item for item in plan.cases[1].classes}
    assert [item.suffices for item in verdict.values()] == [False, True, True, True]
    assert verdict[1.0].lifetime_years == pytest.approx(5 / plan.cases[1].dwpd)
    assert verdict[1.0].headroom_years == pytest.approx(5 / plan.cases[1].dwpd - 5)
    assert verdict[0.3].headroom_years is not None
    assert verdict[0.3].headroom_years < 0


def test_strict_numbers_leave_parity_out_and_keep_amplification_apart() -> None:
    ratio = value("capacity_ratio", 30.5 / 30.0, "test")
    (item,) = plan_endurance([case(rmw=1.5)], capacity_ratio=ratio).cases
    assert item.strict_host_dwpd == pytest.approx(3 * 0.024 * 30.5 / 30 * 1.5)
    assert item.strict_nand_dwpd == pytest.approx(item.strict_host_dwpd * 2.68)
    (plain,) = plan_endurance([LOW]).cases
    assert plain.strict_host_dwpd == pytest.approx(0.072)
    assert any("read-modify-write is not measured" in note for note in plan_endurance([LOW]).notes)
    assert not any("not measured" in note for note in plan_endurance([case(rmw=1.5)]).notes)


def test_larger_drives_need_less_at_the_same_number() -> None:
    reference = value("reference_drive_bytes", 1.6e12, "test")
    (item,) = plan_endurance([HIGH], reference_drive=reference, drive_sizes=[3_200_000_000_000]).cases
    assert item.larger_drives[0].dwpd == pytest.approx(item.dwpd / 2)
    assert item.larger_drives[0].class_dwpd == 0.3
    assert on_larger_drive(0.38, 1.6, 6.4) == pytest.approx(0.095)
    with pytest.raises(UsageError, match="--reference-drive"):
        plan_endurance([HIGH], drive_sizes=[1])


def test_three_instead_of_ten_dwpd_gives_a_quarter_more() -> None:
    ten, three = plan_endurance([LOW]).over_provisioning
    assert (ten.class_dwpd, ten.reserved_pct, ten.capacity_gain_pct) == (10, pytest.approx(20), 0)
    assert (three.class_dwpd, three.capacity_gain_pct) == (3, pytest.approx(25))
    assert [item.class_dwpd for item in over_provisioning([Provision(1, 100), Provision(3, 80)])] == [3, 1]
    with pytest.raises(UsageError):
        over_provisioning([Provision(1, 0)])


def test_ranges_give_the_corners() -> None:
    (item,) = plan_endurance([case(ssi=(3, 4), waf=(2.68, 3.17))]).cases
    assert item.low_dwpd == pytest.approx(3 * 0.024 * 1.2 * 2.68)
    assert item.high_dwpd == pytest.approx(4 * 0.024 * 1.2 * 3.17)
    assert item.dwpd == pytest.approx(3.5 * 0.024 * 1.2 * 2.925)
    assert item.ci95 is not None
    assert item.low_dwpd < item.ci95[0] < item.dwpd < item.ci95[1] < item.high_dwpd


def test_a_class_must_stand_the_high_end() -> None:
    (item,) = plan_endurance([case(ssi=(3, 4.5))]).cases
    assert item.dwpd < 0.3 < item.high_dwpd
    assert item.class_dwpd == 1
    (much,) = plan_endurance([case(fswpd=10.0)]).cases
    assert much.class_dwpd is None


def test_the_interval_is_that_of_days_and_drives_against_brute_force() -> None:
    plan = measured()
    (item,) = plan.cases
    fswpd, waf = plan.inputs[1], plan.inputs[2]
    random = np.random.default_rng(99)
    brute = []
    for _ in range(2000):
        assert fswpd.samples is not None
        assert waf.samples is not None
        mean = random.choice(fswpd.samples, fswpd.samples.size).mean()
        brute.append(3 * mean * 1.2 * np.median(random.choice(waf.samples, waf.samples.size)))
    assert item.ci95 is not None
    assert item.ci95 == pytest.approx(tuple(np.percentile(brute, (2.5, 97.5))), rel=0.05)
    assert measured().cases[0].ci95 == item.ci95  # the same numbers for everyone


def test_file_system_writes_per_day() -> None:
    result = file_system_writes(days(0, 10, 20, 70), SystemCapacity(1000, "test"))
    assert (result.mean, result.median, result.max, result.days) == (0.025, 0.015, 0.07, 4)
    assert result.p95 == pytest.approx(0.0625)
    assert result.days_without_writes == 1
    assert result.mean_ci95 is not None


def test_days_with_too_few_reports_are_left_out() -> None:
    mixed = DailyWrites("scratch", [*days(10, 20).days, *days(1, covered=40).days], ["ost"], ["made-up"])
    result = file_system_writes(mixed, SystemCapacity(1000, "test"))
    assert (result.days, result.days_left_out, result.mean) == (2, 1, 0.015)
    assert (result.left_out, result.days_scaled) == ([date(2019, 1, 1)], 0)
    assert "2019-01-01" in plan_endurance([LOW], writes=result).notes[0]
    with pytest.raises(UsageError, match="1 days, none with reports for 95 %"):
        file_system_writes(days(1, covered=40), SystemCapacity(1000, "test"))
    with pytest.raises(UsageError, match="no day"):
        file_system_writes(days(), SystemCapacity(1000, "test"))


def test_a_complete_day_has_95_percent_and_a_part_of_one_is_scaled_and_marked() -> None:
    """DEFINITIONS "Days": 10 bytes in 40 % of a day are 25 a day; 19 in 95 % are a complete day's 19."""
    part, whole = days(10, covered=40).days, days(19, covered=95).days
    mixed = DailyWrites("scratch", [*part, *whole], ["ost"], ["made-up"])
    assert file_system_writes(mixed, SystemCapacity(1000, "test")).mean == 0.019
    every = file_system_writes(mixed, SystemCapacity(1000, "test"), 0)
    assert (every.days, every.days_left_out, every.days_scaled, every.max) == (2, 0, 1, 0.025)
    assert "1 day with less than 95 % reported, scaled to a whole day" in plan_endurance([LOW], writes=every).notes


def drive(host: int, flash: int | None) -> Drive:
    reported = {
        "serial": f"{host} {flash}", "source": "isdct", "first_us": 0, "last_us": 0, "readings": 1, "falls": 0,
        "capacity_bytes": 1600, "host_write_bytes": host, "nand_write_bytes": flash,
    }  # fmt: skip
    return Drive(**{field.name: reported.get(field.name) for field in fields(Drive)})


def test_amplification_of_a_fleet() -> None:
    drives = DriveReadings("burst", [drive(100, 150), drive(100, 250), drive(1, 10), drive(7, None)], 0, 0)
    result = write_amplification(drives)
    assert (result.min, result.median, result.max, result.drives) == (1.5, 2.5, 10.0, 3)
    assert result.fleet == pytest.approx(410 / 201)
    assert result.origin == "burst: 3 of 4 drives, last read on 1970-01-01 (isdct)"
    with pytest.raises(UsageError, match="no drive tells both"):
        write_amplification(DriveReadings("burst", [drive(7, None)], 0, 0))


def test_keys_of_the_result() -> None:
    plain = to_plain(plan_endurance([LOW]))
    wanted = ["ssi", "fswpd", "data", "parity", "waf", "dwpd", "strict_host_dwpd", "strict_nand_dwpd"]
    assert list(plain["cases"][0])[:8] == wanted
    assert list(plain["fswpd"])[:5] == ["mean", "median", "p95", "max", "days"]
    assert plain["fswpd"]["mean"] is None
    assert plain["fswpd"]["days"] == 0
    assert to_plain(measured())["fswpd"]["days"] == 200


@pytest.mark.parametrize("wrong", [{"ssi": 0.0}, {"waf": -1.0}, {"fswpd": -0.1}, {"waf": float("inf")}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        plan_endurance([case(**wrong)])


def test_nothing_written_lasts_for_ever() -> None:
    (item,) = plan_endurance([case(fswpd=0.0)]).cases
    assert item.dwpd == 0
    assert item.classes[0].lifetime_years is None
    assert item.class_dwpd == 0.3


def test_classes_and_warranty_are_chosen() -> None:
    (item,) = plan_endurance([HIGH], classes=[3, 0.5, 0.5], warranty_years=7).cases
    assert [verdict.class_dwpd for verdict in item.classes] == [0.5, 3]
    assert item.classes[0].lifetime_years == pytest.approx(7 * 0.5 / item.dwpd)
    with pytest.raises(UsageError, match="above 0"):
        plan_endurance([HIGH], classes=[0])


def test_a_drive_must_stand_the_interval_where_it_reaches_further() -> None:
    assert worst(1.0, (0.5, 2.0)) == 2.0
    assert worst(3.0, (0.5, 2.0)) == 3.0
    assert worst(3.0, None) == 3.0
