"""What a token of an agent cannot do: write what no sampler makes, or speak for other servers, or from the future.

Each attack with what an honest agent's samples become meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.config import Config
from iolens.errors import InputError
from iolens.hub.hub_config import HubConfig, Quotas, TakeoverRules, hub_config
from iolens.hub.hub_state import hub_state
from iolens.hub.inbox import Inbox, SegmentName
from iolens.hub.takeovers import UploadCounts, WriterRecord, write_uploads
from iolens.hub.writer import BatchWriter, WriterLimits
from iolens.records import CounterSet, Item, Row, Sample
from iolens.sources.spool import SegmentHeader, Tick, encode_header, encode_tick
from iolens.store.maintenance import verify_store
from iolens.store.store import Store
from iolens.views.hub_state import tables
from tests.agent import truth
from tests.hub.segments import RUN, T0, S, content, sample, stem
from tests.hub.test_writer import inbox_of, put

HOUR_US = 3600 * S
AT = {"time": T0, "filesystem": "fs"}
FORGED = {
    "calibrations": {**AT, "name": "forged", "valid_from": T0, "write_latency_s": 1e-9},
    "batches": {"batch": "x", "part": 1, "time": T0, "origin": "x"},
    "baselines": {"filesystem": "fs", "target": "fs-oss1", "counter_set": "target_io", "position": 9, "counters": "{}"},
    "jobs": {**AT, "source": "slurm", "job_id": "7", "start": T0, "user": "ceo", "ended": True},
    "target_io": {**AT, "start": T0 - S, "target": "fs-oss9", "write_bytes": 1},
    "drives": {**AT, "serial": "S1", "host": "oss1", "wear_pct": 99.0},
    "agent_health": {"time": T0, "host": "oss1", "run": RUN, "trouble": "forged"},
    "target_servers": {**AT, "target": "fs-oss1", "host": "oss1"},
    "client_io": {**AT, "source": "job-files", "start": T0 - S, "node": "n1", "job_id": "7", "read_bytes": 1},
}
MORE_FORGED = {
    "a job of ours that has ended": ("jobs", {**AT, "source": "job-files", "job_id": "7", "start": T0, "ended": True}),
    "another source": ("target_capacity", {**AT, "source": "lctl", "target": "fs-evil", "used_bytes": 1}),
}
ROWS = {**{name: (name, values) for name, values in FORGED.items()}, **MORE_FORGED}


def body(host: str, ticks: Sequence[tuple[int, Sequence[Item]]], sequence: int = 1) -> bytes:
    """A segment with any items."""
    lines = (encode_tick(Tick(time_us, items)) for time_us, items in ticks)
    return encode_header(SegmentHeader(host, RUN, sequence)) + b"".join(lines)


def of_target(target: str, numbers: range, begin: int = 0, ahead_us: int = 0) -> list[tuple[int, list[Item]]]:
    """Samples of a target, 10 bytes more with each tick."""
    ticks: list[tuple[int, list[Item]]] = []
    for number in numbers:
        time_us = T0 + number * 5 * S + ahead_us
        sets = {"": CounterSet({"write_bytes": begin + 10 * number, "write_ops": number})}
        ticks.append((time_us, [Sample("target_io", "fs", target, time_us, time_us, sets, {"target_kind": "ost"})]))
    return ticks


def writer_at(inbox: Inbox, folder: Path, tick: int, rules: TakeoverRules | None = None) -> BatchWriter:
    """A writer whose clock shows this tick."""
    writer = BatchWriter.open(inbox.directory, str(folder / "store"), WriterLimits(), rules)
    writer.now = lambda: (T0 + tick * 5 * S) / 1e6
    return writer


def reason(inbox: Inbox, host: str, folder: str = "bad") -> str:
    (path,) = (inbox.segments / host / folder).glob("*.reason")
    return path.read_text()


def targets(folder: Path) -> dict[str, int]:
    """Bytes written by target."""
    sums: dict[str, int] = {}
    for row in truth.rows(folder / "store", "target_io"):
        sums[row["target"]] = sums.get(row["target"], 0) + row["write_bytes"]
    return sums


# Forged tables


@pytest.mark.parametrize("what", ROWS)
def test_a_segment_brings_nothing_that_no_sampler_of_its_host_makes(tmp_path: Path, what: str) -> None:
    table, values = ROWS[what]
    inbox = inbox_of(tmp_path)
    put(inbox, "evil", range(0), body=body("evil", [(T0, [Row(table, values)])]))
    put(inbox, "oss1", range(4))
    record = writer_at(inbox, tmp_path, 4)
    record.drain()
    assert targets(tmp_path) == {"fs-oss1": 30}
    stored = truth.rows(tmp_path / "store", table)
    assert [row for row in stored if row.get("origin") == "x" or row.get("position") == 9] == []
    if table not in ("batches", "baselines", "target_io"):
        assert stored == []
    assert table in reason(inbox, "evil")
    assert {host: own.bad for host, own in WriterRecord.read(inbox.directory).agents.items()} == {"evil": 1, "oss1": 0}
    assert verify_store(Store(tmp_path / "store")).faults == []


def test_what_is_forged_is_left_out_and_the_rest_of_a_segment_is_stored(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    ticks = [*of_target("fs-evil", range(4)), (T0 + 20 * S, [Row("batches", FORGED["batches"])])]
    put(inbox, "evil", range(0), body=body("evil", ticks))
    writer_at(inbox, tmp_path, 4).drain()
    assert targets(tmp_path) == {"fs-evil": 30}
    assert "row of batches from 'agent': no sampler makes it" in reason(inbox, "evil")


def test_a_host_is_known_with_and_without_its_domain(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    rows = [Row("target_servers", {**AT, "target": "fs-oss1", "host": "oss1"}),
            Row("agent_health", {"time": T0, "host": "oss1.example.org", "run": RUN})]  # fmt: skip
    put(inbox, "oss1.example.org", range(0), body=body("oss1.example.org", [(T0, rows)]))
    writer_at(inbox, tmp_path, 1).drain()
    assert [row["host"] for row in truth.rows(tmp_path / "store", "target_servers")] == ["oss1"]
    assert not list(inbox.segments.rglob("bad"))


# Targets of other servers


def test_an_agent_does_not_bring_samples_of_a_target_that_another_still_sends(tmp_path: Path) -> None:
    """And what the honest one sends before, beside and after it is stored, every byte."""
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(4), 1)
    writer_at(inbox, tmp_path, 4).drain()
    put(inbox, "evil", range(0), body=body("evil", of_target("fs-oss1", range(5, 20), 10**9)))
    writer = writer_at(inbox, tmp_path, 20)
    writer.drain()
    assert len(inbox.waiting("evil")) == 1  # the server before may be about to say the same
    put(inbox, "oss1", range(4, 12), 2)
    later = writer_at(inbox, tmp_path, 30)
    later.drain()
    assert "target_io of 'fs-oss1': it is served by oss1: both send it" in reason(inbox, "evil")
    put(inbox, "oss1", range(12, 16), 3)
    later.drain()
    assert targets(tmp_path) == {"fs-oss1": 150}
    assert truth.breaks(tmp_path / "store") == []


def test_of_two_that_send_a_new_target_in_one_batch_the_first_counts(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    put(inbox, "a-evil", range(0), body=body("a-evil", of_target("fs-oss1", range(2, 9), 10**9)))
    put(inbox, "oss1", range(8))
    writer_at(inbox, tmp_path, 9).drain()
    assert targets(tmp_path) == {"fs-oss1": 70}
    assert "both send it" in reason(inbox, "a-evil")


def partner_takes_over(inbox: Inbox, folder: Path, tick: int, rules: TakeoverRules | None = None) -> BatchWriter:
    """oss1 has served its target until tick 3, oss2 serves it from tick 60 on."""
    put(inbox, "oss1", range(4))
    writer_at(inbox, folder, 4).drain()
    put(inbox, "oss2", range(0), body=body("oss2", of_target("fs-oss1", range(60, 70), -600)))
    writer = writer_at(inbox, folder, tick, rules)
    writer.drain()
    return writer


def booked(folder: Path) -> str:
    return " ".join(row["problems"] for row in truth.rows(folder / "store", "batches"))


def test_a_take_over_by_a_configured_partner_is_stored_at_once_and_noted(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inbox = inbox_of(tmp_path)
    partner_takes_over(inbox, tmp_path, 70, TakeoverRules((("oss1", "oss2"),)))
    assert targets(tmp_path) == {"fs-oss1": 120}  # 30, and 90 from its first sample of the new mount on
    noted = "fs-oss1 of fs: oss2 takes it over from oss1: they are a fail-over pair"
    assert noted in booked(tmp_path)
    assert noted in capfd.readouterr().err
    assert {agent.host: agent.taken_over for agent in hub_state(tmp_path / "state", datetime.now(UTC)).agents} == {
        "oss1": 0, "oss2": 1,
    }  # fmt: skip


def test_who_has_partners_gives_its_targets_to_no_other(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    partner_takes_over(inbox, tmp_path, 10**6, TakeoverRules((("oss1", "oss3"),)))
    assert targets(tmp_path) == {"fs-oss1": 30}
    assert "they are no fail-over pair" in reason(inbox, "oss2")


def test_the_server_that_the_configuration_states_may_always_have_its_target(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    partner_takes_over(inbox, tmp_path, 70, TakeoverRules(servers={"fs": {"oss2": ["fs-*"]}}))
    assert targets(tmp_path) == {"fs-oss1": 120}


def test_without_pairs_a_take_over_waits_until_the_server_before_is_silent(tmp_path: Path) -> None:
    """Its last tick was number 3, and the threshold is a quarter of an hour: 180 ticks."""
    inbox = inbox_of(tmp_path)
    writer = partner_takes_over(inbox, tmp_path, 70)
    assert targets(tmp_path) == {"fs-oss1": 30}
    assert len(inbox.waiting("oss2")) == 1
    writer.now = lambda: (T0 + 182 * 5 * S) / 1e6
    writer.drain()
    assert len(inbox.waiting("oss2")) == 1
    writer.now = lambda: (T0 + 190 * 5 * S) / 1e6
    writer.drain()
    assert targets(tmp_path) == {"fs-oss1": 120}
    assert "oss1 is silent for 0:15:35" in booked(tmp_path)


def test_a_server_that_the_hub_hears_from_is_not_silent(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    write_uploads(inbox.directory, {"oss1": UploadCounts(last_seen_us=T0 + 500 * 5 * S)})
    partner_takes_over(inbox, tmp_path, 510)
    assert targets(tmp_path) == {"fs-oss1": 30}


def test_without_pairs_a_take_over_is_stored_when_the_server_before_goes_on_without_the_target(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(0), 2, body=body("oss1", of_target("fs-other", range(20, 40)), 2))
    partner_takes_over(inbox, tmp_path, 70)
    assert targets(tmp_path)["fs-oss1"] == 120
    assert "oss1 goes on without it since 2023-11-14T22:13:35Z" in booked(tmp_path)


def test_the_last_samples_of_the_server_before_are_late_as_ever(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    partner_takes_over(inbox, tmp_path, 70, TakeoverRules((("oss1", "oss2"),)))
    put(inbox, "oss1", range(4, 8), 2)
    writer_at(inbox, tmp_path, 71).drain()
    assert [path.stem for path in inbox.segments.rglob("late/*.seg")] == [stem("oss1", 2)]


@pytest.mark.parametrize("text", ["oss1", "", "oss1 oss1"])
def test_a_pair_has_two_servers(text: str) -> None:
    with pytest.raises(InputError, match="is no pair of servers"):
        hub_config(Config(hub={"failover": [text]}))


def test_pairs_and_silence_are_configured() -> None:
    known = hub_config(
        Config(hub={"failover": ["oss1 oss2", "a, b, c"], "takeover_after": "5min", "aside_limit": "1MiB"})
    )
    assert (known.failover, known.takeover_s, known.aside_bytes) == (
        (("oss1", "oss2"), ("a", "b", "c")),
        300.0,
        1 << 20,
    )
    rules = TakeoverRules(known.failover, {"fs": {"oss1": ("OST*",)}}, 300.0)
    read = TakeoverRules.from_json(rules.to_json())
    assert (read.partners("oss2.example.org"), read.silence_s) == (["oss1", "oss2"], 300.0)
    assert read.is_stated(("fs", "OST1"), "oss1")
    assert not read.is_stated(("fs", "OST1"), "oss2")


# Samples from the future


def arrived(path: Path, tick: int) -> Path:
    """The hub received it at this tick."""
    at = (T0 + tick * 5 * S) / 1e6
    os.utime(path, (at, at))
    return path


@pytest.mark.parametrize("ahead_us", [HOUR_US, 87_600 * HOUR_US], ids=["an hour", "ten years"])
def test_a_sample_of_the_future_freezes_no_target(tmp_path: Path, ahead_us: int) -> None:
    """Two forged samples, the second ahead; the genuine ones before and after are all stored."""
    inbox = inbox_of(tmp_path)
    ticks = [*of_target("fs-evil", range(1)), *of_target("fs-evil", range(1, 2), 10**12, ahead_us)]
    arrived(put(inbox, "evil", range(0), body=body("evil", ticks)), 2)
    arrived(put(inbox, "oss1", range(4)), 4)
    writer_at(inbox, tmp_path, 4).drain()
    arrived(put(inbox, "oss1", range(4, 8), 2), 8)
    arrived(put(inbox, "evil", range(0), 2, body=body("evil", of_target("fs-evil", range(2, 6)), 2)), 8)
    writer_at(inbox, tmp_path, 8).drain()
    assert targets(tmp_path) == {"fs-evil": 50, "fs-oss1": 70}
    assert "later than a clock may be ahead when it arrived" in reason(inbox, "evil")
    assert not list(inbox.segments.rglob("late"))


def test_a_clock_that_was_ahead_at_boot_costs_the_samples_of_that_time_and_no_others(tmp_path: Path) -> None:
    """It samples an hour ahead, the clock is set right, and the agent begins another run."""
    inbox = inbox_of(tmp_path)
    ahead = put(inbox, "oss1", range(0), body=body("oss1", of_target("fs-oss1", range(4), 0, HOUR_US)))
    arrived(ahead, 5)
    writer = writer_at(inbox, tmp_path, 5)
    writer.drain()
    for sequence, begin in enumerate((5, 9, 13), 1):
        path = inbox.segments / "oss1" / f"{stem('oss1', sequence, 'later-run')}.seg"
        path.write_bytes(content("oss1", range(begin, begin + 4), sequence, "later-run"))
        arrived(path, begin + 4)
    writer.drain()
    assert targets(tmp_path) == {"fs-oss1": 110}
    assert truth.breaks(tmp_path / "store") == []
    assert len(list(inbox.segments.rglob("bad/*.seg"))) == 1
    assert not list(inbox.segments.rglob("late"))


def test_a_clock_a_few_minutes_ahead_is_a_clock(tmp_path: Path) -> None:
    inbox = inbox_of(tmp_path)
    arrived(put(inbox, "oss1", range(0), body=body("oss1", of_target("fs-oss1", range(4), 0, 500 * S))), 4)
    writer_at(inbox, tmp_path, 4).drain()
    assert targets(tmp_path) == {"fs-oss1": 30}


# What was put aside


def with_late_segments(tmp_path: Path) -> Inbox:
    """Two segments of oss1 in `late/`, one of junk in `bad/`."""
    inbox = inbox_of(tmp_path)
    put(inbox, "oss1", range(20, 24), 9)
    writer_at(inbox, tmp_path, 24).drain()
    for sequence in (1, 2):
        put(inbox, "oss1", range(4 * sequence, 4 * sequence + 4), sequence)
    put(inbox, "junk", range(0), body=b"what is this\n")
    writer_at(inbox, tmp_path, 25).drain()
    return inbox


def test_what_was_put_aside_does_not_count_against_the_quota(tmp_path: Path) -> None:
    inbox = with_late_segments(tmp_path)
    quotas = Quotas(inbox, HubConfig(agent_segments=1, agent_bytes=400, inbox_segments=1, reserve_bytes=0))
    quotas.refresh()
    name = SegmentName.parse(stem("oss1", 10))
    assert name is not None
    quotas.check(name, 100)


def test_what_was_put_aside_is_in_the_log_and_on_the_page(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with_late_segments(tmp_path)
    said = capfd.readouterr().err
    assert f"late/{stem('oss1', 1)}" not in said
    assert f"{stem('oss1', 1)}.seg: moved to late/: older than what is stored" in said
    assert f"{stem('junk')}.seg: moved to bad/: " in said
    (table,) = tables(hub_state(tmp_path / "state", datetime.now(UTC)))
    assert "Put aside, not in the store: 2 segments in late/, 1 segment in bad/, the first since " in table.note


def test_the_oldest_that_were_put_aside_go_when_there_are_too_many(tmp_path: Path) -> None:
    inbox = with_late_segments(tmp_path)
    (first, second) = sorted((inbox.segments / "oss1" / "late").glob("*.seg"))
    os.utime(first, (1, 1))
    assert inbox.drop_aside("oss1", second.stat().st_size) == 1
    assert [path.name for path in (inbox.segments / "oss1" / "late").glob("*")] == [second.name]
    assert inbox.drop_aside("oss1", second.stat().st_size) == 0


def test_the_sample_of_the_tests_is_that_of_an_honest_agent() -> None:
    (item,) = of_target("fs-oss1", range(3, 4))[0][1]
    assert item == sample("oss1", 3)
