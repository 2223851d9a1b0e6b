"""What the agent writes into its log when something is wrong: one line for each trouble, and one when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.agent.sampling.collector import AgentSettings, Metronome, SystemClock, _Desk
from iolens.agent.sampling.spool import Spool
from iolens.messages import ERROR, NOTICE, WARNING, Message
from iolens.records import Item, Problem
from tests.agent.server import Server

TICK_US = 5_000_000
UNREACHABLE = (
    "s3://centre/batches: cannot be opened: Kernel error -> Generic S3 error: Error performing GET http://10.0.0.1:9000/"
    "centre/batches/_delta_log/_last_checkpoint in 2.08799354s, after 10 retries, max_retries: 10, retry_timeout: 180s"
    " - HTTP error: error sending request: client error (Connect): tcp connect error: Connection refused (os error 111)"
)
SHIPPED = {"error": "", "shipped": 1, "late": 0, "bad": 0, "left": 0, "refused": 0, "reasons": []}


@contextmanager
def desk(root: Path, log: list[str], limit_bytes: int = 1 << 30) -> Iterator[_Desk]:
    settings = AgentSettings(root, root.parent / "spool", None, slow_interval_s=10.0)
    with Spool.open(settings.spool, limit_bytes) as spool:
        yield _Desk.of(settings, spool, log.append)


def sample(agent: _Desk, *ticks: int) -> None:
    for tick in ticks:
        agent.sample(tick * TICK_US, Metronome(SystemClock(), TICK_US))


def levels(log: list[str]) -> list[int]:
    assert all(isinstance(line, Message) and len(line) < 500 and "\n" not in line for line in log)
    return [line.level for line in log if isinstance(line, Message)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Server(tmp_path / "root").work()
    return tmp_path / "root"


def test_a_healthy_machine_is_no_news(root: Path) -> None:
    log: list[str] = []
    with desk(root, log) as agent:
        sample(agent, 1, 2, 3, 4)
    assert log == []


def test_refused_files_are_one_line_for_each_reason_and_one_when_they_are_read_again(root: Path) -> None:
    log: list[str] = []
    refused = True

    def read(place: Path, time_us: int, name: str | None, skip: frozenset[str]) -> Iterator[Item]:
        if refused and not skip:  # long files, read every other tick
            for number in range(64):
                yield Problem(f"{place}/osc/OST{number:04x}/job_stats", None, "cannot be read: Permission denied")

    with desk(root, log) as agent:
        agent.sampler = replace(agent.sampler, read=read)
        sample(agent, 2, 3, 4, 5, 6, 7)
        assert len(log) == 1
        assert "osc/OST0000/job_stats: cannot be read: Permission denied and 63 more places; `iolens doctor`" in log[0]
        refused = False
        sample(agent, 8, 9)
    assert levels(log) == [WARNING, NOTICE]
    assert "Permission denied" in log[1]


def test_a_full_spool_is_one_error_and_its_end_is_said(root: Path) -> None:
    log: list[str] = []
    with desk(root, log, limit_bytes=1) as agent:
        sample(agent, 1, 2, 3)
        assert agent.sampler.health.trouble
        agent.spool.limit_bytes = 1 << 30
        sample(agent, 4, 5)
        assert agent.sampler.health.trouble == ""
    assert levels(log) == [ERROR, NOTICE]
    assert log[0].startswith(f"a sample is lost: {root.parent / 'spool'} has reached its limit")


def test_a_store_that_is_away_is_one_line_with_place_cause_and_remedy(root: Path) -> None:
    log: list[str] = []
    with desk(root, log) as agent:
        for seconds in ("2.08799354s", "2.1s", "1.9999s"):
            agent.hear({"error": UNREACHABLE.replace("2.08799354s", seconds)})
        assert agent.sampler.health.trouble.startswith("s3://centre/batches")  # in full, in health.json
        agent.hear(SHIPPED)
        agent.hear(SHIPPED)
    assert levels(log) == [WARNING, NOTICE]
    assert log[0].startswith(
        f"not shipped, samples stay in the spool {root.parent / 'spool'}: s3://centre/batches: cannot"
    )
    assert log[0].endswith("(os error 111); tried again by itself, `iolens doctor` checks the store or hub")
    assert log[1].startswith("shipped again, 0 segments wait (it lasted ")


def test_segments_that_are_put_aside_are_said_with_what_to_do(root: Path) -> None:
    log: list[str] = []
    with desk(root, log) as agent:
        aside = {**SHIPPED, "bad": 1, "late": 2, "reasons": ["/spool/a.seg: moved to bad/: not one readable tick"]}
        agent.hear(aside)
        agent.hear(aside)
    assert levels(log) == [WARNING, WARNING]
    assert log[0] == "1 segments cannot be read: /spool/a.seg: moved to bad/: not one readable tick"
    assert log[1].endswith(f"`iolens ingest spool {root.parent / 'spool' / 'late'} --rebuild`")
