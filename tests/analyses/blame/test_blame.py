"""Who made it busy (B1): shares against loops over the same rows, which follow the definition."""

from __future__ import annotations

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from iolens.analyses.attribution.whose import CONTRADICTORY, OF_PEOPLE, WITHOUT_RECORD
from iolens.analyses.blame import Blame
from iolens.api import OpenStore
from iolens.errors import NotKnownError, UsageError
from iolens.models.transaction_time import GRACE_2012
from iolens.records import Row
from iolens.schema import BENCHMARK_RUNS, DIRECTIONS, size_column
from iolens.store.rows import to_arrow
from iolens.units import from_epoch_us
from iolens.views.blame import named as named_in_words
from iolens.views.blame import shares as shares_figure
from iolens.views.render.figures import BandMark
from iolens.views.render.json_text import to_json
from tests.chosen_calibration import GRACE
from tests.store.samples import capture
from tests.store.test_part_memory import same

S = 1_000_000
MIDNIGHT = 1_699_920_000  # of a UTC day
SIZES = (4096, 1 << 20)
OSTS = ("scratch-OST0000", "scratch-OST0001", "scratch-OST0002")
MDT = "scratch-MDT0000"
IDS = ("101", "102", "dd.1000", "", "777.")
OPERATIONS = ("open", "close", "getattr")

Dict = dict[str, object]


@dataclass
class Rows:
    """Rows by table; times in seconds."""

    job_io: list[Dict] = field(default_factory=list)
    target_sizes: list[Dict] = field(default_factory=list)
    target_io: list[Dict] = field(default_factory=list)
    metadata_ops: list[Dict] = field(default_factory=list)
    jobs: list[Dict] = field(default_factory=list)

    def items(self) -> Iterator[Row]:
        for table, rows in vars(self).items():
            for row in rows:
                start, end = (round(float(str(row[name])) * S) for name in ("start", "time"))
                yield Row(
                    table,
                    {"filesystem": "scratch", **row, "start": start, "time": end, "duration_s": (end - start) / S},
                )


def made_up(seed: int) -> Rows:
    """Two hours over midnight: samples every 5 or 60 s with gaps, job_stats every minute or so, off the minute."""
    chance = random.Random(seed)
    rows = Rows()
    first, last = MIDNIGHT - 3600, MIDNIGHT + 3600
    for target in (*OSTS, MDT):
        is_mdt = target == MDT
        common = {"target": target, "target_kind": "mdt" if is_mdt else "ost"}
        tick = chance.choice((5, 20, 60))
        for start in range(first, last, tick):
            times = {"start": start, "time": start + tick, **common}
            if chance.random() < 0.9 and not is_mdt:
                counts = {size_column(d, size): chance.choice((0, 3, 200)) for d in DIRECTIONS for size in SIZES}
                rows.target_sizes.append({**times, **counts})
            if chance.random() < 0.9 and not is_mdt:
                rows.target_io.append({**times, **{f"{d}_ops": chance.choice((0, 50, 300)) for d in DIRECTIONS}})
            if is_mdt:
                rows.metadata_ops.append({**times, **{name: chance.randrange(60) for name in OPERATIONS}})
        ends = [first + chance.randrange(60)]
        while ends[-1] < last:
            ends.append(ends[-1] + chance.choice((60, 60, 61, 180, 600)))
        if seed % 5 == 4:  # nobody read job_stats for more than an hour
            ends = [end for end in ends if not MIDNIGHT - 1800 <= end < MIDNIGHT + 2400]
        for start, end in itertools.pairwise(ends):
            for job in chance.sample(IDS, chance.randrange(0, 4)):
                ops = {f"{d}_ops": chance.choice((0, 40, 900)) for d in DIRECTIONS}
                moved = {f"{d}_bytes": ops[f"{d}_ops"] * chance.choice(SIZES) for d in DIRECTIONS}
                done = {name: chance.randrange(40) for name in OPERATIONS} if is_mdt else {}
                rows.job_io.append({"start": start, "time": end, **common, "job_id": job, **ops, **moved, **done})
    return rows


def number(row: Dict, name: str) -> float:
    return float(str(row.get(name) or 0))


def within(table: list[Dict], target: object, start: float, end: float, ends: list[float]) -> list[Dict]:
    """Fine rows of an interval: those whose next end of an interval is its own, and that lie mostly in it."""
    return [
        row
        for row in table
        if row["target"] == target
        and next((other for other in ends if other >= number(row, "time")), None) == end
        and 2 * start < number(row, "start") + number(row, "time")
    ]


def by_hand(rows: Rows, directions: tuple[str, ...]) -> tuple[dict[str, float], float]:
    """Seconds by job id, and of all targets; of disks, or of the metadata server in operations."""
    is_disk = directions == DIRECTIONS
    asked = [row for row in rows.job_io if (row["target_kind"] == "ost") == is_disk]
    asked = [row for row in asked if number(row, "time") - number(row, "start") <= 3600]
    done = rows.target_sizes if is_disk else rows.metadata_ops
    seconds: defaultdict[str, float] = defaultdict(float)
    total = 0.0
    counted: set[int] = set()
    for target in {row["target"] for row in asked}:
        places = sorted({(number(row, "start"), number(row, "time")) for row in asked if row["target"] == target})
        ends = [end for _, end in places]
        for start, end in places:
            jobs = [row for row in asked if row["target"] == target and number(row, "time") == end]
            fine = within(done, target, start, end, ends)
            requests = within(rows.target_io, target, start, end, ends)
            counted |= {id(row) for row in fine}
            for direction in directions:
                took, wanted = one_interval(direction, fine, requests, jobs)
                everyone = sum(wanted.values())
                took_s = everyone if took is None else took
                factor = took_s / everyone if everyone > took_s else 1.0
                total += took_s
                for job, wanted_s in wanted.items():
                    seconds[job] += factor * wanted_s
    rest = [row for row in done if id(row) not in counted]
    return dict(seconds), total + sum(one_interval(d, rest, [], [])[0] or 0.0 for d in directions)


def one_interval(
    direction: str, fine: list[Dict], requests: list[Dict], jobs: list[Dict]
) -> tuple[float | None, dict[str, float]]:
    """T, and τ of each job before it is scaled."""
    if direction == "metadata":
        took = sum(number(row, name) for row in fine for name in OPERATIONS) if fine else None
        return took, {str(row["job_id"]): sum(number(row, name) for name in OPERATIONS) for row in jobs}
    cost = GRACE_2012.of(direction)
    ios = [(number(row, size_column(direction, size)), size) for row in fine for size in SIZES]
    took = sum(count * cost.seconds(size) for count, size in ios) if fine else None
    rpcs = sum(number(row, f"{direction}_ops") for row in requests)
    k = sum(count for count, _ in ios) / rpcs if fine and rpcs else 1.0
    return took, {
        str(row["job_id"]): cost.latency_s * number(row, f"{direction}_ops") * k
        + cost.s_per_byte * number(row, f"{direction}_bytes")
        for row in jobs
    }


def opened(tmp_path: Path, rows: Rows, name: str = "made up") -> OpenStore:
    store = OpenStore(str(tmp_path / "store"))
    tally = store.store.ingest([capture(list(rows.items()), name)], "test")
    assert (tally.refused, tally.rows["job_io"]) == (0, len(rows.job_io))
    return store


def shares(result: Blame) -> float:
    return sum(line.share_pct for line in result.who) + (result.others.share_pct if result.others else 0.0)


@pytest.mark.parametrize("metadata", [False, True], ids=["disks", "metadata"])
@pytest.mark.parametrize("seed", range(6))
def test_seconds_are_those_of_the_definition(tmp_path: Path, seed: int, metadata: bool) -> None:
    rows = made_up(seed)
    expected, total = by_hand(rows, ("metadata",) if metadata else DIRECTIONS)
    with opened(tmp_path, rows) as store:
        result = store.blame(metadata=metadata, calibration=GRACE_2012.name)
    assert result.method == "job_stats"
    shown = {line.name: line.share_pct for line in result.who}
    names = {"": "(blank id)"}
    assert shown == {names.get(job, job): pytest.approx(100 * seconds / total) for job, seconds in expected.items()}
    assert shares(result) + result.unattributed_pct == pytest.approx(100, abs=1e-9)
    assert result.unattributed_pct == pytest.approx(100 - 100 * sum(expected.values()) / total, abs=1e-9)
    assert result.disk_seconds == (None if metadata else pytest.approx(total))
    assert result.metadata_operations == (total if metadata else None)
    for target in result.targets:
        assert (target.disk_seconds is None, target.metadata_operations is None) == (metadata, not metadata)
    for tick in result.series:
        assert sum(tick.shares.values()) + tick.unattributed_pct == pytest.approx(100, abs=1e-6) or not any(
            (*tick.shares.values(), tick.unattributed_pct)
        )
    for target in result.targets:
        assert sum(target.shares.values()) + target.unattributed_pct == pytest.approx(100, abs=1e-6)


def job(job_id: str, user: str, project: str, name: str = "", nodes: str = "nid[1-4]") -> Dict:
    times = {"start": MIDNIGHT - 4000, "time": MIDNIGHT + 4000}
    return {**times, "cluster": "c", "job_id": job_id, "user": user, "project": project, "name": name,
            "node_list": nodes, "ended": True}  # fmt: skip


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenStore]:
    rows = made_up(1)
    rows.jobs += [job("101", "ana", "climate", "wrf", "nid7"), job("102", "bo", "climate", "lammps")]
    with opened(tmp_path_factory.mktemp("named"), rows) as store:
        yield store


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("job", {"101", "102", "dd.1000", "(blank id)", "777."}),
        ("user", {"ana", "bo", "uid 1000", WITHOUT_RECORD}),
        ("project", {"climate", WITHOUT_RECORD}),
        ("executable", {"wrf", "lammps", "dd", "(blank id)", "777."}),
        ("node", {"nid7", "102", "dd.1000", "(blank id)", "777."}),
    ],
)
def test_names_come_from_records_and_ids_and_are_never_guessed(named: OpenStore, by: str, names: set[str]) -> None:
    result = named.blame(by=by)
    assert {line.name for line in result.who} == names
    unknown = {WITHOUT_RECORD} if by in OF_PEOPLE else {"(blank id)", "777."}
    assert {line.name for line in result.who if not line.is_known} >= unknown
    assert shares(result) + result.unattributed_pct == pytest.approx(100, abs=1e-9)
    assert (result.coverage.ids_without_record, result.coverage.incomplete_ids) == (3, 1)
    if by == "project":
        assert next(line for line in result.who if line.name == "climate").jobs == 2


def test_ids_that_name_nobody_are_one_row_with_their_sums_and_number(named: OpenStore) -> None:
    """Three of five ids have no record; one of them says its user. They are neither users nor projects."""
    by_job = {line.name: line for line in named.blame().who}
    for by, ids in (("user", ("(blank id)", "777.")), ("project", ("(blank id)", "777.", "dd.1000"))):
        result = named.blame(by=by)
        (row,) = [line for line in result.who if not line.is_known]
        assert (row.name, row.jobs) == (WITHOUT_RECORD, len(ids))
        assert row.share_pct == pytest.approx(sum(by_job[text].share_pct for text in ids))
        assert row.read_bytes == sum(by_job[text].read_bytes or 0 for text in ids)
        legend = {mark.label for mark in shares_figure(result).panels[0].marks if isinstance(mark, BandMark)}
        assert WITHOUT_RECORD in legend
        assert not legend & set(ids)
        assert named_in_words(row, result) == f"Jobs without a record ({len(ids)} ids)"


def test_a_record_without_a_project_is_kept_apart_from_none(tmp_path: Path) -> None:
    rows = made_up(1)
    rows.jobs += [job("101", "ana", "climate"), {**job("102", "bo", ""), "project": None}]
    with opened(tmp_path, rows) as store:
        result = store.blame(by="project")
    unknown = {line.name: line.jobs for line in result.who if not line.is_known}
    assert unknown == {"jobs whose record names no project": 1, WITHOUT_RECORD: 3}


def test_records_that_contradict_each_other_name_nobody(tmp_path: Path) -> None:
    rows = made_up(2)
    rows.jobs += [job("101", "ana", "climate"), {**job("101", "bo", "fusion"), "cluster": "other"}]
    with opened(tmp_path, rows) as store:
        result = store.blame(by="user")
    assert CONTRADICTORY in {line.name for line in result.who if not line.is_known}
    assert result.coverage.contradictory_ids == 1


def test_the_rest_of_the_list_is_one_line(named: OpenStore) -> None:
    whole, cut = named.blame(), named.blame(top=2)
    assert len(cut.who) == 2
    assert cut.others is not None
    assert cut.others.jobs == 3
    assert cut.others.share_pct == pytest.approx(sum(line.share_pct for line in whole.who[2:]))
    assert cut.others.read_bytes == sum(line.read_bytes or 0 for line in whole.who[2:])


def test_operations_on_metadata_targets_stand_beside_bytes(named: OpenStore) -> None:
    rows = made_up(1)
    done = sum(number(row, name) for row in rows.job_io if row["job_id"] == "101" for name in OPERATIONS)
    moved = sum(number(row, "read_bytes") for row in rows.job_io if row["job_id"] == "101" and row["target"] != MDT)
    line = next(line for line in named.blame().who if line.name == "101")
    assert (line.metadata_operations, line.read_bytes) == (done, moved)


def test_one_target(named: OpenStore) -> None:
    whole, alone = named.blame(), named.blame(targets=["OST0001"])
    there = next(target for target in whole.targets if target.target == OSTS[1])
    assert alone.disk_seconds == pytest.approx(there.disk_seconds)
    assert [target.target for target in alone.targets] == [OSTS[1]]


def test_the_busiest_hour_and_a_plateau_choose_the_window(tmp_path: Path) -> None:
    rows = Rows()
    for start in range(MIDNIGHT, MIDNIGHT + 4 * 3600, 60):
        times = {"start": start, "time": start + 60, "target": OSTS[0], "target_kind": "ost"}
        is_busy = MIDNIGHT + 6000 <= start < MIDNIGHT + 9600
        rows.target_sizes.append({**times, size_column("read", 1 << 20): 12000 if is_busy else 10})
        asked = {"read_ops": 12000 if is_busy else 10, "read_bytes": (12000 if is_busy else 10) << 20}
        rows.job_io.append({**times, "job_id": "9" if is_busy else "8", **asked, "write_ops": 0, "write_bytes": 0})
    with opened(tmp_path, rows) as store:
        results = [store.blame(busiest="1h", calibration=GRACE), store.blame(plateau=1, calibration=GRACE)]
        with pytest.raises(UsageError, match="no plateau 7"):
            store.blame(plateau=7, calibration=GRACE)
    for result in results:
        assert result.window_start == from_epoch_us((MIDNIGHT + 6000) * S)
        assert result.window_end == from_epoch_us((MIDNIGHT + 9600) * S)
        assert [(line.name, line.share_pct) for line in result.who] == [("9", pytest.approx(100))]


def test_late_rows_are_in_the_next_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that end on the next day, which a remembered part of this day has looked at."""
    monkeypatch.setattr("iolens.store.selection.FEWEST_REMEMBERED", 0)
    rows = made_up(3)
    late = Rows(job_io=[row for row in rows.job_io if number(row, "time") > MIDNIGHT + 1])
    rows.job_io = [row for row in rows.job_io if row not in late.job_io]
    with opened(tmp_path, rows) as store:
        store.blame()
    with opened(tmp_path, late, "late") as store:
        again = store.blame()
    with OpenStore(str(tmp_path / "store"), fresh=True) as store:
        same(*(json.loads(to_json(result)) for result in (store.blame(), again)))


def run(job_id: str, start: float, end: float, written: int) -> Row:
    return Row(
        "runs",
        {
            "filesystem": "scratch", "run_id": f"{int(job_id):064x}", "job_id": job_id, "user": "ana",
            "executable": "wrf", "start": round(start * S), "time": round(end * S), "duration_s": end - start,
            "read_bytes": 0, "write_bytes": written, "processes": 4,
        },
    )  # fmt: skip


def test_without_job_stats_bytes_at_the_time_are_association(tmp_path: Path) -> None:
    """A minute with 1 GiB written, of which one run wrote a quarter; then one with twice what the disks wrote."""
    rows = Rows()
    for minute in range(10):
        times = {"start": MIDNIGHT + 60 * minute, "time": MIDNIGHT + 60 * minute + 60}
        target = {"target": OSTS[0], "target_kind": "ost"}
        rows.target_sizes.append({**times, **target, size_column("write", 1 << 20): 1024})
        rows.target_io.append(
            {**times, **target, "write_ops": 1024, "write_bytes": 1 << 30, "read_ops": 0, "read_bytes": 0}
        )
    with opened(tmp_path, rows) as store:
        with pytest.raises(NotKnownError, match="has no job_stats in this window, and no job's bytes are known"):
            store.blame()
        logs = [run("5", MIDNIGHT, MIDNIGHT + 60, 1 << 28), run("6", MIDNIGHT + 60, MIDNIGHT + 120, 2 << 30)]
        store.store.ingest([capture(logs, "logs")], "test")
        result = store.blame(by="job")
        with pytest.raises(NotKnownError, match="no operations of its metadata servers are known"):
            store.blame(metadata=True)
    assert result.method == "overlap"
    assert {line.name: line.share_pct for line in result.who} == {"5": pytest.approx(2.5), "6": pytest.approx(10)}
    assert result.unattributed_pct == pytest.approx(87.5)
    assert result.targets == []


def test_without_job_stats_the_heat_map_of_a_log_says_when(tmp_path: Path) -> None:
    """Two minutes of 1 GiB each; the log's heat map has a job's bytes, half of all, in the second."""
    rows = Rows()
    for minute in range(2):
        times = {"start": MIDNIGHT + 60 * minute, "time": MIDNIGHT + 60 * minute + 60}
        target = {"target": OSTS[0], "target_kind": "ost"}
        rows.target_sizes.append({**times, **target, size_column("write", 1 << 20): 1024})
        moved = {"write_ops": 1024, "write_bytes": 1 << 30, "read_ops": 0, "read_bytes": 0}
        rows.target_io.append({**times, **target, **moved})
    log = run("5", MIDNIGHT, MIDNIGHT + 120, 1 << 29)
    half = {"bin": 1, "bin_s": 60.0, "read_bytes": 0, "write_bytes": 1 << 28, "module": "POSIX", "ranks": 1}
    named = {name: log.values[name] for name in ("filesystem", "run_id", "job_id", "start", "time", "duration_s")}
    series = [Row("run_series", {**named, **half, "rank": rank}) for rank in range(2)]
    with opened(tmp_path, rows) as store:
        store.store.ingest([capture([log, *series], "logs")], "test")
        result = store.blame(by="job")
        second = store.blame(
            by="job", since=from_epoch_us((MIDNIGHT + 60) * S), until=from_epoch_us((MIDNIGHT + 120) * S)
        )
    assert [tick.shares for tick in result.series] == [{"5": pytest.approx(0)}, {"5": pytest.approx(50)}]
    assert [(line.name, line.share_pct) for line in second.who] == [("5", pytest.approx(50))]  # it began before


def storm() -> Rows:
    """Four hours: job 8 keeps the disks busy in the second, job 9 the metadata server in the fourth."""
    rows = Rows()
    for start in range(MIDNIGHT, MIDNIGHT + 4 * 3600, 60):
        hour = (start - MIDNIGHT) // 3600
        times = {"start": start, "time": start + 60}
        ost, mdt = ({**times, "target": OSTS[0], "target_kind": "ost"}, {**times, "target": MDT, "target_kind": "mdt"})
        ios = 12000 if hour == 1 else 10
        rows.target_sizes.append({**ost, size_column("read", 1 << 20): ios})
        counts = {"read_ops": ios, "read_bytes": ios << 20, "write_ops": 0, "write_bytes": 0}
        rows.job_io.append({**ost, "job_id": "8", **counts})
        rows.metadata_ops.append({**mdt, "open": 100, "getattr": 50_000 if hour == 3 else 200})
        rows.job_io.append({**mdt, "job_id": "8", "open": 100, "getattr": 100})
        rows.job_io.append({**mdt, "job_id": "9", "open": 0, "getattr": 49_900 if hour == 3 else 100})
    return rows


def test_the_busiest_hour_of_metadata_servers_is_that_of_their_operations(tmp_path: Path) -> None:
    """Not that of the disks, in which another job did most of the few operations."""
    with opened(tmp_path, storm()) as store:
        result, disks = store.blame(metadata=True, busiest="1h"), store.blame(busiest="1h")
    assert result.window_start == from_epoch_us((MIDNIGHT + 3 * 3600) * S)
    assert result.window_end == from_epoch_us((MIDNIGHT + 4 * 3600) * S)
    assert result.who[0].name == "9"
    assert result.metadata_operations == 60 * 50_100
    assert (disks.window_start, disks.who[0].name) == (from_epoch_us((MIDNIGHT + 3600) * S), "8")


def mdtest(phase: str, per_s: float) -> Dict:
    named = {"source": "mdtest", "tool": "mdtest", "filesystem": "scratch", "run_id": "r", "direction": phase}
    return {"time": MIDNIGHT * S, **named, "tasks": 8, "operations": round(10 * per_s), "duration_s": 10.0}


def test_the_busiest_hour_of_metadata_servers_is_that_of_their_time_where_mdtest_tells_it(tmp_path: Path) -> None:
    """A thousand times as many operations of a kind that costs a millionth are no load."""
    with opened(tmp_path, storm()) as store:
        rates = {"File stat": 1e9, "File read": 1e3}
        store.store.append("benchmark_runs", to_arrow(BENCHMARK_RUNS, [mdtest(*item) for item in rates.items()]))
        rows = Rows()
        for minute in range(60):
            start = MIDNIGHT + 7200 + 60 * minute
            mdt = {"start": start, "time": start + 60, "target": "scratch-MDT0001", "target_kind": "mdt"}
            rows.metadata_ops.append({**mdt, "open": 500})
            rows.job_io.append({**mdt, "job_id": "7", "open": 500})
        store.store.ingest([capture(list(rows.items()), "second server")], "test")
        result = store.blame(metadata=True, busiest="1h")
    assert result.window_start == from_epoch_us((MIDNIGHT + 7200) * S)
    assert result.who[0].name == "7"
    assert result.metadata_operations is None
    assert result.disk_seconds == pytest.approx(60 * (600 / 1e3 + 200 / 1e9))


def test_without_operations_of_metadata_servers_their_busiest_hour_is_not_known(tmp_path: Path) -> None:
    rows = storm()
    rows.metadata_ops.clear()
    with (
        opened(tmp_path, rows) as store,
        pytest.raises(NotKnownError, match="no operations of its metadata servers are known in this window, so its"),
    ):
        store.blame(metadata=True, busiest="1h")
