"""Jobs out of random layers against the plainest loops: what is known of each, which match, in which order."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa
import pytest

from iolens.store.jobs import ORDERS, RECORDS, ROWS, RUNS, SAME_JOB_US, SHARES, TOTALS, JobLayers, MergedCondition

HOUR_US = 3_600_000_000
WORDS = ("wrf", "WRF.exe", "a_b", "a%b", "ab", "100", "*", "<b>\x1b'; DROP", "ÜBER", "", None)
USERS = ("ada", "Ada", "o'neil", "user_1", None)

Row = dict[str, Any]


def random_layers(numbers: random.Random) -> dict[str, list[Row]]:
    """Records of two clusters with ids that repeat, runs with and without a job, shares and totals of any of them."""
    ids = [str(100 + number) for number in range(12)]
    pick = numbers.choice

    def whole() -> int | None:
        return pick((None, 0, 1, 5, 2**40))

    records, seen = [], set()
    for _ in range(numbers.randint(0, 20)):
        start = numbers.randrange(48) * HOUR_US
        key = pick(("frost", "blaze", None)), pick(ids), start
        if key not in seen:
            seen.add(key)
            length = numbers.randrange(1, 5)
            records.append({
                "cluster": key[0], "job_id": key[1], "start_us": start, "epoch_us": start + length * HOUR_US,
                "duration_s": pick((None, 3600.0 * length)), "user": pick(USERS), "project": pick(("p1", "P2", None)),
                "name": pick(WORDS), "state": pick(("COMPLETED", "FAILED", None)), "nodes": whole(),
                "cores": pick((None, 4, 64)), "ended": pick((True, False, None)), "filesystem": None,
            })  # fmt: skip
    runs: list[Row] = [
        {
            "run_id": f"{number:064x}", "job_id": pick((*ids, "", None)), "filesystem": pick(("scratch", "home", None)),
            "start_us": (start := numbers.randrange(48) * HOUR_US), "epoch_us": start + HOUR_US,
            "duration_s": pick((None, 3600.0)), "user": pick(USERS), "project": pick(("p1", None)),
            "executable": pick(WORDS), "processes": pick((None, 8)),
            "nodes": whole(), "read_bytes": whole(), "write_bytes": whole(), "place": number,
        }
        for number in range(numbers.randint(0, 12))
    ]  # fmt: skip
    shares: list[Row] = [
        {
            "job_id": pick((*ids, "odd.id")), "filesystem": name, "disk_seconds": pick((None, 0.0, 1.5, 700.0)),
            "share_pct": numbers.random(), "read_bytes": whole(), "write_bytes": whole(), "user": "ada",
            "executable": "prog", "is_counted": pick((True, False)),
        }
        for name in ("scratch", "home") for _ in range(numbers.randint(0, 6))
    ]  # fmt: skip
    totals: list[Row] = [
        {"job_id": record["job_id"], "cluster": record["cluster"], "filesystem": "scratch", "read_bytes": whole(),
         "write_bytes": whole()}
        for record in records if numbers.random() < 0.3
    ]  # fmt: skip
    return {"records": records, "runs": runs, "shares": shares, "totals": totals}


def layers_of(given: dict[str, list[Row]]) -> JobLayers:
    schemas = {"records": RECORDS, "runs": RUNS, "shares": SHARES, "totals": TOTALS}
    return JobLayers(**{name: pa.Table.from_pylist(given[name], schema) for name, schema in schemas.items()})


def total(values: list[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def merged(given: dict[str, list[Row]]) -> list[Row]:
    """All jobs, by loops."""
    last: dict[tuple[Any, str], Row] = {}
    for record in sorted(given["records"], key=lambda row: (row["start_us"], row["epoch_us"])):
        last[record["cluster"], record["job_id"]] = record
    jobs: dict[tuple[Any, str], dict[str, list[Row]]] = {}

    def parts(cluster: Any, job_id: str, is_recorded: bool) -> dict[str, list[Row]]:
        key = (is_recorded, cluster), job_id
        return jobs.setdefault(key, {"records": [], "runs": [], "shares": [], "totals": []})

    for (cluster, job_id), record in last.items():
        parts(cluster, job_id, True)["records"].append(record)
    for run in given["runs"]:
        namesakes = [record for record in last.values() if record["job_id"] == run["job_id"]]
        if len(namesakes) > 1:
            namesakes = [
                record
                for record in namesakes
                if run["start_us"] <= record["epoch_us"] + SAME_JOB_US
                and run["epoch_us"] >= record["start_us"] - SAME_JOB_US
            ]
        is_placed = len(namesakes) == 1
        home = namesakes[0]["cluster"] if is_placed else None
        parts(home, run["job_id"] or run["run_id"], is_placed)["runs"].append(run)
    for share in given["shares"]:
        namesakes = [record for record in last.values() if record["job_id"] == share["job_id"]]
        is_placed = len(namesakes) == 1
        parts(namesakes[0]["cluster"] if is_placed else None, share["job_id"], is_placed)["shares"].append(share)
    for line in given["totals"]:
        parts(line["cluster"], line["job_id"], True)["totals"].append(line)
    return [_job(job_id, known) for (_, job_id), known in jobs.items()]


def _job(job_id: str, known: dict[str, list[Row]]) -> Row:
    record = known["records"][0] if known["records"] else None
    runs, totals = sorted(known["runs"], key=lambda run: run["place"]), known["totals"]
    counted = [share for share in known["shares"] if share["is_counted"]]
    spent = [run["processes"] * run["duration_s"] for run in runs if run["processes"] and run["duration_s"]]
    core_hours = sum(spent) / 3600 if spent else None
    if record is not None and record["cores"] is not None and record["duration_s"] is not None:
        core_hours = record["cores"] * record["duration_s"] / 3600
    end_us = max((run["epoch_us"] for run in runs), default=None)
    if record is not None:
        end_us = None if record["ended"] is False else record["epoch_us"]
    nodes = [run["nodes"] for run in runs if run["nodes"] is not None]
    programs = [row["executable"] for row in (*runs, *counted)]
    read, written = (
        first(*(total([row[name] for row in layer]) for layer in (runs, counted, totals)))
        for name in ("read_bytes", "write_bytes")
    )
    names = {row["filesystem"] for layer in known.values() for row in layer if row["filesystem"] is not None}
    words = {"record": known["records"], "log": runs, "job_stats": counted, "nodes": totals}
    return {
        "job_id": job_id,
        "cluster": record and record["cluster"],
        "user": first(record and record["user"], *(run["user"] for run in runs), *(s["user"] for s in known["shares"])),
        "project": first(record and record["project"], *(run["project"] for run in runs)),
        "name": first(*programs, record and record["name"]),
        "job_name": record and record["name"],
        "start_us": record["start_us"] if record else min((run["start_us"] for run in runs), default=None),
        "end_us": end_us,
        "duration_s": record["duration_s"] if record else total([run["duration_s"] for run in runs]),
        "nodes": first(record and record["nodes"], max(nodes, default=None)),
        "cores": record and record["cores"],
        "core_hours": core_hours,
        "read_bytes": read,
        "write_bytes": written,
        "disk_seconds": total([share["disk_seconds"] for share in known["shares"]]),
        "share_pct": total([share["share_pct"] for share in known["shares"]]),
        "runs": len(runs),
        "state": record and record["state"],
        "filesystems": sorted(names),
        "known_by": [word for word, rows in words.items() if rows],
        "did_io": bool(runs or known["shares"] or totals),
    }  # fmt: skip


def same(given: Row, expected: Row) -> bool:
    return all(
        given[name] == (pytest.approx(expected[name]) if isinstance(expected[name], float) else expected[name])
        for name in ROWS
    )


@pytest.mark.parametrize("seed", range(60))
def test_every_job_is_what_loops_make_of_the_layers(seed: int) -> None:
    given = random_layers(random.Random(seed))
    rows, known = layers_of(given).jobs()
    expected = merged(given)
    assert known == len(rows) == len(expected)
    for row, job in zip(sorted(rows, key=_apart), sorted(expected, key=_apart), strict=True):
        assert same(row, job), (row, job)


def _apart(row: Row) -> tuple[Any, ...]:
    return row["job_id"], "record" in row["known_by"], row["cluster"] or "", row["cluster"] is None


def matches(condition: MergedCondition, job: Row) -> bool:
    text = condition.text.lower()
    fields = [job[name] for name in ("user", "project", "name", "job_name") if job[name] is not None]
    if "*" in text or "?" in text:
        has_text = any(fnmatchcase(word.lower(), text.replace("[", "[[]")) for word in (job["job_id"], *fields))
    else:
        has_text = not text or job["job_id"].startswith(text) or any(text in word.lower() for word in fields)
    names = [job[name] for name in ("name", "job_name") if job[name] is not None]
    has_name = not condition.names or any(fnmatchcase(name, glob) for name in names for glob in condition.names)
    equal = (("user", condition.users), ("project", condition.projects), ("cluster", condition.clusters),
             ("state", condition.states))  # fmt: skip
    return (
        has_text
        and has_name
        and all(not values or job[name] in values for name, values in equal)
        and (job["did_io"] or not condition.did_io)
    )


def random_condition(numbers: random.Random) -> MergedCondition:
    def some(*values: str) -> tuple[str, ...]:
        return tuple(numbers.sample(values, numbers.randint(1, len(values)))) if numbers.random() < 0.25 else ()

    texts = ("", "", "10", "wrf", "A_B", "a%b", "o'n", "p", "a*b", "?df", "1?0", "*wrf*", "\\", "ODD", "drop")
    return MergedCondition(
        numbers.choice(texts), some("ada", "o'neil"), some("p1", "P2"), some("w*", "a?b", "ab"), some("frost", "blaze"),
        some("COMPLETED"), numbers.random() < 0.2,
    )  # fmt: skip


VALUES = {
    "start": lambda job: job["start_us"],
    "disk": lambda job: job["disk_seconds"],
    "bytes": lambda job: total([job["read_bytes"], job["write_bytes"]]),
    "read": lambda job: job["read_bytes"],
    "written": lambda job: job["write_bytes"],
    "core-hours": lambda job: job["core_hours"],
    "duration": lambda job: job["duration_s"],
}


@pytest.mark.parametrize("seed", range(100, 160))
def test_a_page_is_a_part_of_all_that_match_in_order(seed: int) -> None:
    numbers = random.Random(seed)
    given = random_layers(numbers)
    condition, order, reverse = random_condition(numbers), numbers.choice(tuple(ORDERS)), numbers.random() < 0.5
    top, skip = numbers.randint(1, 8), numbers.choice((0, 0, 3, 30))
    page, known = layers_of(given).jobs(condition, order, reverse=reverse, top=top, skip=skip)
    value = VALUES[order]

    def rank(job: Row) -> tuple[Any, ...]:
        own = value(job) or 0
        start = (job["start_us"] is None, -(job["start_us"] or 0))
        by_value = (value(job) is None, own if reverse else -own)
        return *by_value, *start, job["job_id"], job["cluster"] is None, job["cluster"] or ""

    wanted = sorted((job for job in merged(given) if matches(condition, job)), key=rank)
    assert known == len(wanted)
    assert [rank(row) for row in page] == [rank(job) for job in wanted[skip : skip + top]]


def test_a_sum_that_no_column_can_hold_is_not_known() -> None:
    run = {"job_id": "1", "start_us": 0, "epoch_us": 1, "read_bytes": 2**62, "write_bytes": 1}
    runs = [{**run, "run_id": str(number), "place": number} for number in range(4)]
    ((job,), _) = JobLayers(runs=pa.Table.from_pylist(runs, RUNS)).jobs(order="bytes")
    assert (job["read_bytes"], job["write_bytes"]) == (None, 4)


def test_nothing_is_no_error() -> None:
    assert JobLayers().jobs() == ([], 0)
    assert JobLayers().jobs(skip=5) == ([], 0)
