"""Every job_stats among the real captures goes into a store, each job under the id that the file has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.analyses.attribution.whose import UNKNOWN, JobIdForm, JobIdParts, guessed_parts
from iolens.api import OpenStore
from iolens.counters.ceilings import DEFAULT, RateCeilings
from iolens.records import CounterSet, Row
from iolens.schema import DIRECTIONS
from iolens.sources.lustre.job_stats import JobStats, job_id_bytes, parse_job_stats
from iolens.store.store import Store
from tests.store.samples import capture, sample
from tests.store.test_ingest import rows

TEXT = re.compile(rb"^(?:\S+\.job_stats=)?(job_stats:\r?\n(?:- job_id:.*\n(?:  .*\n?)*)*)", re.MULTILINE)
ID = re.compile(rb"^- job_id: *(.*?)\s*$", re.MULTILINE)
LONG_AGO_S, NOW_S = -1_500_000_000, 0  # from T0 of samples: decades apart


def texts(shared_data: Path) -> Iterator[tuple[str, bytes]]:
    """Each job_stats with the file it is in."""
    for folder in ("lustre-lctl", "lustre-server-proc"):
        for path in sorted((shared_data / folder).rglob("*")):
            if path.is_file():
                yield from ((str(path), match[1]) for match in TEXT.finditer(path.read_bytes()))


@pytest.fixture
def parsed(shared_data: Path) -> list[tuple[JobStats, bytes]]:
    all_stats = [(parse_job_stats(text, place), text) for place, text in texts(shared_data)]
    assert len(all_stats) >= 6
    return all_stats


def test_all_are_parsed_and_have_their_ids(parsed: list[tuple[JobStats, bytes]]) -> None:
    for stats, text in parsed:
        assert stats.problems == [], stats.place
        printed = [re.sub(rb'^"(.*)"$', rb"\1", raw) for raw in ID.findall(text)]
        assert [job_id_bytes(job) for job in stats.jobs] == printed, stats.place


def test_all_go_into_a_store_as_they_are(tmp_path: Path, parsed: list[tuple[JobStats, bytes]]) -> None:
    store = Store(str(tmp_path / "store"))
    wanted: dict[tuple[str, str], tuple[int | None, ...]] = {}
    names = ("read_bytes", "write_bytes", "open", "statfs")
    for number, (stats, _) in enumerate(parsed):
        target = f"scratch-OST{number:04x}"
        readings: list[dict[str, CounterSet]] = [{}, stats.jobs]
        items = [sample("job_io", at, sets, target) for at, sets in zip((LONG_AGO_S, NOW_S), readings, strict=True)]
        tally = store.ingest([capture(items, target)], "test", ceilings=RateCeilings(default=DEFAULT))
        assert tally.refused == 0
        for job, now in stats.jobs.items():
            if any(now.counters.values()):
                wanted[target, job] = tuple(now.counters.get(name) for name in names)
    stored = {
        (target, job): tuple(values) for target, job, *values in rows(store, "job_io", "target", "job_id", *names)
    }
    assert stored == wanted
    assert len(wanted) > 40


def test_what_their_ids_say(parsed: list[tuple[JobStats, bytes]]) -> None:
    known = {job for stats, _ in parsed for job in stats.jobs}
    assert {"24", "vim.0", "bash: line 1.1000", "@nodehost:0", "caf\\xe9_run.1001"} <= known
    assert guessed_parts("24") == JobIdParts("24")
    assert guessed_parts("vim.0") == JobIdParts(executable="vim", uid=0)
    assert guessed_parts("bash: line 1.1000") == JobIdParts(executable="bash: line 1", uid=1000)
    assert guessed_parts("caf\\xe9_run.1001") == JobIdParts(executable="caf\\xe9_run", uid=1001)
    assert guessed_parts("@nodehost:0") == UNKNOWN


def test_an_id_that_lustre_has_cut(parsed: list[tuple[JobStats, bytes]]) -> None:
    """The host is `es-2-virt3-cosp` in the ids beside it."""
    known = {job for stats, _ in parsed for job in stats.jobs}
    whole, cut = "fio:0:es-2-virt3-cosp", "node_exporter:989:es-2-virt3-co"
    assert {whole, cut} <= known
    form = JobIdForm("%e:%u:%h")
    assert form.parts(whole) == JobIdParts(executable="fio", uid=0, host="es-2-virt3-cosp")
    assert form.parts(cut) == JobIdParts(executable="node_exporter", uid=989, is_whole=False)


def test_blame_shows_unknown_ids_as_they_are(tmp_path: Path, parsed: list[tuple[JobStats, bytes]]) -> None:
    """What the files have of each job, as one minute of one OST each."""
    items = [
        Row(
            "job_io",
            {
                "filesystem": "scratch", "target": f"scratch-OST{number:04x}", "target_kind": "ost", "job_id": job,
                "start": 0, "time": 60_000_000, "duration_s": 60.0,
                **{f"{d}_{what}": now.counters.get(f"{d}_{what}", 0) for d in DIRECTIONS for what in ("ops", "bytes")},
            },
        )
        for number, (stats, _) in enumerate(parsed)
        for job, now in stats.jobs.items()
    ]  # fmt: skip
    with OpenStore(str(tmp_path / "store")) as opened:
        assert opened.store.ingest([capture(items, "minute")], "test").refused == 0
        result = opened.blame("scratch", top=1000)
    assert {line.name for line in result.who} == {job for stats, _ in parsed for job in stats.jobs}
    assert not any(line.is_known for line in result.who)
    assert sum(line.share_pct for line in result.who) + result.unattributed_pct == pytest.approx(100, abs=1e-9)
