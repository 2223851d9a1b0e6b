"""Stores that both revisions are asked about: the earlier one makes each, and says what there is to ask for.

`none` is no store, `demo` that of `iolens demo`, `centre` that of the tests of the pages, with jobs, runs, drives,
scans and rollups; any other is a folder of captures.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from comparison.sides import CONFIG, DriverError, environment, printed

REPOSITORY: Final = Path(__file__).parent.parent.parent
CAPTURES: Final = Path(os.environ.get("IOLENS_SHARED", REPOSITORY.parent / "shared")) / "data"
NONE, DEMO, CENTRE = "none", "demo", "centre"
END: Final = "2026-01-07T12:00"
SUPPLIED: Final = ("--filesystem", "scratch", "--timezone", "America/Los_Angeles", "--at", "2024-01-01")
"""What captures may lack."""
SETTINGS: Final = """\
[serve]
require_token = true

[calibrations.ours]
write_latency_s = 60e-6
write_s_per_byte = 0.25e-9
read_latency_s = 40e-6
read_s_per_byte = 0.15e-9
"""
LOGS: Final = ("darshan", "darshan-ior-pairs")
TREE: Final = {"first.dat": 10, "below/second.dat": 5000, "below/deeper/third.txt": 70_000}  # bytes
STUDY: Final = ("bench", "latency", "study-place", "--tracer", "loop", "--files", "5", "--store", "store", "--folder")


@dataclass(frozen=True, slots=True)
class StoreAsked:
    """A store, and how much is asked of it."""

    name: str
    brief: bool


def all_stores() -> list[StoreAsked]:
    """Those that there are on this machine."""
    folders = sorted(path.name for path in CAPTURES.iterdir() if path.is_dir()) if CAPTURES.is_dir() else []
    return [*(StoreAsked(name, False) for name in (NONE, DEMO, CENTRE)), *(StoreAsked(name, True) for name in folders)]


def made_store(name: str, source: Path, place: Path, seconds: float) -> dict[str, Any]:
    """Make it at a place with a package, unless it is there; what can be asked for, by name."""
    known = place.parent / f"{place.name}.json"
    if known.exists():
        values: dict[str, Any] = json.loads(known.read_text("utf-8"))
        return values
    shutil.rmtree(place, ignore_errors=True)
    began = datetime.now(UTC)
    values = {**_make(name, source, place, seconds), "began": began.isoformat()}
    known.write_text(json.dumps(values), "utf-8")
    return values


def _make(name: str, source: Path, place: Path, seconds: float) -> dict[str, Any]:
    (place / "study-place").mkdir(parents=True)
    (place / CONFIG).write_text(SETTINGS, "utf-8")
    for path, size in TREE.items():
        file = place / "tree" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x" * size)
    if name == NONE:
        return {"has_store": False, "filesystem": [], **_of_files(), "rule": _rules(source, place, seconds)}
    if name == CENTRE:
        _make_centre(source, place, seconds)
    else:
        made = ["ingest", str(CAPTURES / name), "--store", "store", *SUPPLIED]
        made = ["demo", "--output", ".", "--end", END] if name == DEMO else made
        (_, error), *_ = printed(source, place, [made], seconds)
        if not (place / "store").is_dir():
            raise DriverError(error or "nothing was stored")
    return _values(name, source, place, seconds)


def _make_centre(source: Path, place: Path, seconds: float) -> None:
    """By the function of the revision's own tests, below the folder of its package."""
    text = "from pathlib import Path; from tests.web.small_centre import make_centre; make_centre(Path('store'))"
    variables = environment(source, place)
    variables["PYTHONPATH"] = os.pathsep.join((variables["PYTHONPATH"], str(source.parent)))
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, cwd=place, env=variables, timeout=seconds, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DriverError(done.stderr[-1000:])


def _values(name: str, source: Path, place: Path, seconds: float) -> dict[str, Any]:
    """What is in the store, by its own answers, after two studies and a check of alerts."""
    state = [[*STUDY, folder] for folder in ("study-1", "study-2")] if name in (DEMO, CENTRE) else []
    state.append(["serve", "token", "add", "known", "--role", "viewer", "--store", "store"])
    of_store = ["--store", "store", "--format", "json"]
    questions = {
        "info": ["store", "info", *of_store], "jobs": ["job", "search", "--top", "50", *of_store],
        "studies": ["bench", "list", *of_store], "log": ["store", "log", *of_store],
        "filesystems": ["store", "filesystems", *of_store],
    }  # fmt: skip
    said = printed(source, place, [*state, *questions.values()], seconds)[len(state) :]
    answers = {
        key: json.loads(text) if not error and text else {} for key, (text, error) in zip(questions, said, strict=True)
    }
    if not answers["info"]:
        raise DriverError(f"no store: {said[0][1]}")
    values: dict[str, Any] = {
        "has_store": True,
        "filesystem": list(answers["info"]["filesystems"]),
        **_times(answers),
        **_jobs(answers),
    }
    values["other_filesystem"] = (values["filesystem"][1:] or [None])[0]
    studies = [study["name"] for study in answers["studies"].get("studies", ())]
    values |= dict(zip(("other_study", "study"), studies, strict=False))
    batches = answers["log"].get("batches", ())
    values["batch"] = batches[-1]["batch"] if batches else None
    values |= _of_answers(source, place, values, seconds)
    if values.get("end"):
        printed(source, place, [["alerts", "check", "--now", values["end"], "--store", "store"]], seconds)
    return values


def _times(answers: Mapping[str, Any]) -> dict[str, str]:
    """Beginning, middle and end of the data, and the day of the middle."""
    spans = [(row.get("first_time"), row.get("last_time")) for row in answers["filesystems"].get("filesystems", ())]
    ends = [tuple(map(datetime.fromisoformat, span)) for span in spans if all(span)]
    if not ends:
        return {}
    start, end = min(span[0] for span in ends), max(span[1] for span in ends)
    middle = start + (end - start) / 2
    form = "%Y-%m-%dT%H:%M:%SZ"
    return {
        "start": f"{start:{form}}",
        "middle": f"{middle:{form}}",
        "end": f"{end:{form}}",
        "day": f"{middle:%Y-%m-%d}",
    }


def _jobs(answers: Mapping[str, Any]) -> dict[str, str | None]:
    """A job, one of another user, and one with a log."""
    jobs = [job for job in answers["jobs"].get("jobs", ()) if job.get("user")] or answers["jobs"].get("jobs", [])
    if not jobs:
        return {}
    first = jobs[0]
    other = next((job for job in jobs if job.get("user") != first.get("user")), jobs[-1])
    logged = [job for job in jobs if job.get("runs")] or [{}]
    project = next((job["project"] for job in jobs if job.get("project")), None)
    return {
        "job": first["job_id"], "user": first.get("user"), "other_job": other["job_id"],
        "other_user": other.get("user"), "run_job": logged[0].get("job_id"),
        "other_run_job": logged[-1].get("job_id"), "run_user": logged[0].get("user"),
        "run_project": logged[0].get("project"), "project": project,
    }  # fmt: skip


def _of_answers(source: Path, place: Path, values: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Runs, a target and a node: they are in answers about jobs and file systems."""
    filesystem = ["--filesystem", values["filesystem"][0]] if values["filesystem"] else []
    asked = (
        *(["runs", "summary", str(values.get(name)), "--all"] for name in ("run_job", "other_run_job")),
        ["latency", *filesystem], ["utilization", *filesystem], ["blame", "--by", "node", *filesystem],
        ["job", "list", *filesystem],
    )  # fmt: skip
    commands = [[*words, "--store", "store", "--format", "json"] for words in asked]
    said = [
        json.loads(text) if not error and text.startswith(("{", "[")) else {}
        for text, error in printed(source, place, commands, seconds)
    ]
    first, last, *of_targets, blame, listed = said
    jobs = _named(listed, ("job_id", "jobid"))
    targets = _named(of_targets, ("target",))
    nodes = [row["name"] for row in blame.get("who", ()) if row.get("is_known")]
    return {
        "run": next(iter(_named(first, ("run_id",))), None), "other_run": next(iter(_named(last, ("run_id",))), None),
        "target": next(iter(targets), None), "node": next(iter(nodes), None),
        "listed_job": jobs[0] if jobs else None, "other_listed_job": jobs[-1] if jobs else None,
    }  # fmt: skip


def _named(value: Any, keys: Sequence[str]) -> list[str]:
    """Texts below these keys, anywhere in a document, each once."""
    if isinstance(value, list):
        return list(dict.fromkeys(text for part in value for text in _named(part, keys)))
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in keys if isinstance(value.get(key), str)]
    return list(dict.fromkeys([*own, *(text for part in value.values() for text in _named(part, keys))]))


def _rules(source: Path, place: Path, seconds: float) -> list[str]:
    ((text, error),) = printed(source, place, [["findings", "list", "--format", "json"]], seconds)
    if error:
        raise DriverError(error)
    return _named(json.loads(text), ("code",))


def _of_files() -> dict[str, str | None]:
    """Captures that verbs take without a store."""
    logs = [path for name in LOGS for path in sorted((CAPTURES / name).rglob("*.darshan"))]
    folders = {name: CAPTURES / name for name in ("fio", "ior", "mdtest")}
    return {
        "captures": str(CAPTURES) if CAPTURES.is_dir() else None, "tree": "tree",
        "log": str(logs[0]) if logs else None, "other_log": str(logs[-1]) if logs else None,
        **{name: str(path) if path.is_dir() else None for name, path in folders.items()},
    }  # fmt: skip
