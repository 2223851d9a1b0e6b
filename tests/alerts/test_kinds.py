"""Each kind of rule fires and resolves exactly once on a known fault, and says why, since when and who."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.alerts.kinds import get_kind, kind_names
from tests.alerts import centres
from tests.alerts.centres import OSTS, Centre, minute, rule, webhook
from tests.alerts.hook import Hook

EVERY_TEN = tuple(minute(number) for number in range(40, 201, 10))


@dataclass(frozen=True)
class Fault:
    """A store, a rule, and what is to be heard: of which subject, with which words, fired and resolved when."""

    kind: str
    rows: Callable[[], centres.Rows]
    subject: str
    why: str
    fired: datetime
    resolved: datetime
    who: str | None = None
    more: dict[str, Any] = field(default_factory=dict)
    times: tuple[datetime, ...] = EVERY_TEN

    def __str__(self) -> str:
        return f"{self.kind}-{self.rows.__name__}"


FAULTS = (
    # The mean of 15 minutes is 70 % at the 70th minute and 95 % at the 80th; at the 90th that has held for ten minutes.
    Fault("fsu", centres.busy, "scratch", "over the last 15 min is 95.0 %", minute(90), minute(140), "4711"),
    Fault("plateau", centres.busy, "scratch", "steady at 95.0 %", minute(70), minute(150), "4711"),
    Fault("job-share", centres.busy, "4711", "Job 4711 took", minute(90), minute(160), "4711"),
    Fault("dead-target", centres.silent, OSTS[2], "not reported since 2026-03-02T01:00:00Z", minute(80), minute(130)),
    Fault("dead-target", centres.idle, OSTS[2], "has moved nothing for", minute(80), minute(130)),
    Fault("imbalance", centres.unbalanced, OSTS[2], "the mean of all targets", minute(90), minute(160),
          more={"window": "30min", "clear_for": "10min"}),
    Fault("slow-target", centres.slow, OSTS[2], "99th percentile of reads of", minute(90), minute(160),
          more={"window": "30min", "clear_for": "10min"}),
    Fault("fullness", centres.full, "bytes", "scratch is 95.", minute(80), minute(140), more={"window": "1h"}),
    Fault("silent-agent", centres.agents, "oss2", "The agent on oss2 has sent nothing since 2026-03-02T01:00:00Z",
          minute(90), minute(130)),
    Fault("drive-wear", centres.worn, "S2", "Drive S2 (M) in oss1 reports 85.0 % wear", minute(80), minute(140),
          more={"window": "1h"}),
    Fault("full-date", centres.filling, "bytes", "will reach 90 % on", minute(12 * 1440), minute(22 * 1440),
          more={"window": "10d"}, times=tuple(minute(day * 1440) for day in range(2, 40, 2))),
)  # fmt: skip


def test_every_kind_is_tested() -> None:
    assert {fault.kind for fault in FAULTS} | {"put-aside"} == set(kind_names())


def test_segments_that_were_put_aside_are_heard_of_until_they_are_cleared_away(tmp_path: Path) -> None:
    """By the folders of the hub, not by rows of the store."""
    centre = Centre(tmp_path, centres.busy(), rule("put-aside", clear_for="0s"))
    late = centre.state / "hub" / "segments" / "oss1" / "late"
    late.mkdir(parents=True)
    assert centre.check(10).alerts == []
    segment = late / "oss1~r1~00000001.seg"
    segment.write_bytes(b"samples")
    os.utime(segment, (minute(5).timestamp(),) * 2)
    (alert,) = centre.check(20).alerts
    assert (alert.subject, alert.state, alert.value, alert.unit) == ("oss1", "firing", 1.0, "n")
    assert alert.why.startswith("Of the agent on oss1 1 segments are in late/ and 0 in bad/, the first since ")
    assert iso(minute(5)) in alert.why
    segment.unlink()
    (resolved,) = centre.check(30).resolved
    assert (resolved.id, resolved.why) == (alert.id, "No segment of oss1 is put aside.")


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_is_heard_of_once_when_it_begins_and_once_when_it_ends(fault: Fault, tmp_path: Path) -> None:
    with Hook() as hook:
        written = rule(fault.kind, subject=fault.subject, **fault.more)
        centre = Centre(
            tmp_path, fault.rows(), '[alerts]\nlink = "https://iolens.example.org"\n' + written + webhook(hook.url)
        )
        checks = [centre.check(time) for time in fault.times]
    assert hook.events == ["firing", "resolved"]
    fired, resolved = (post["alert"] for post in hook.posts)
    assert (fired["kind"], fired["subject"], fired["state"]) == (fault.kind, fault.subject, "firing")
    assert fault.why in fired["why"]
    assert (fired["fired_at"], resolved["resolved_at"]) == (iso(fault.fired), iso(fault.resolved))
    assert resolved["id"] == fired["id"]
    assert fired["value"] is not None
    assert fired["link"].startswith("https://iolens.example.org/")
    assert fired["command"].startswith("iolens ")
    assert (None if fired["who"] is None else fired["who"][0]["name"]) == fault.who
    assert sum(len(check.fired) for check in checks) == sum(len(check.resolved) for check in checks) == 1
    assert {check.exit_code for check in checks} <= {0, 3, 4}
    assert all(check.exit_code == (4 if fault.fired <= check.checked_at < fault.resolved else 0) for check in checks
               if not any(line.counts for line in check.not_evaluated))  # fmt: skip


def iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def test_a_store_that_is_no_longer_fed_does_not_look_fine(tmp_path: Path) -> None:
    centre = Centre(
        tmp_path, centres.busy(), rule("fsu") + rule("dead-target", "dead") + rule("silent-agent", "silent")
    )
    check = centre.check(centres.LAST + 60)
    assert [(alert.rule, alert.subject, alert.state) for alert in check.alerts] == [("silent", "scratch", "firing")]
    assert "No row of scratch is stored since 2026-03-02T03:20:00Z, 1 h ago" in check.alerts[0].why
    assert {line.rule for line in check.not_evaluated} == {"rule", "dead"}
    assert all(line.counts for line in check.not_evaluated)


def test_an_alert_stays_as_it_is_while_nothing_is_known(tmp_path: Path) -> None:
    """Rows end amid the fault: the alert goes on firing, and says since when nothing is known."""
    rows = {
        table: [row for row in lines if row["time"] <= centres.epoch_us(minute(100))]
        for table, lines in centres.busy().items()
    }
    centre = Centre(tmp_path, rows, rule("fsu"))
    checks = centre.checks(range(60, 200, 10))
    (alert,) = checks[-1].alerts
    assert alert.state == "firing"
    assert (alert.checked_at, alert.unknown_since) == (minute(100), minute(110))
    assert "at least half is needed" in (alert.unknown_why or "")
    assert sum(len(check.resolved) for check in checks) == 0


def test_links_and_commands_lead_to_the_same_stretch(tmp_path: Path) -> None:
    config = '[alerts]\nlink = "https://iolens.example.org/"\n' + rule("plateau")
    alert = Centre(tmp_path, centres.busy(), config).check(90).alerts[0]
    start, end = iso(alert.window_start), iso(alert.window_end)
    assert alert.command == f"iolens blame -f scratch --from {start} --to {end}"
    quoted = [text.replace(":", "%3A") for text in (start, end)]
    assert alert.link == f"https://iolens.example.org/filesystems/scratch?from={quoted[0]}&to={quoted[1]}"
    assert alert.since == minute(60)


def test_kinds_have_defaults_that_end_alerts_later_than_they_begin() -> None:
    for name in kind_names():
        kind = get_kind(name)
        sign = -1 if kind.is_below else 1
        assert sign * kind.clear <= sign * kind.threshold, name
