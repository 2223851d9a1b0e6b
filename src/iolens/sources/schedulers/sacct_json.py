"""`sacct --json` of Slurm 22.05 to 24.11: one object with a list of jobs, read one job at a time.

Later versions write a number as `{"set": true, "infinite": false, "number": 5}` and a state as a list of texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iolens.records import Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.reading.json_stream import members
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_in_json
from iolens.sources.schedulers.job_records import JobRecord, JobRows
from iolens.sources.schedulers.sacct_columns import ENDED_STATES, WAITING_STATES
from iolens.visible_text import counted

_LATEST_S = LARGEST // 1_000_000


def json_items(path: Path, options: ReadOptions) -> Iterator[Item]:
    """All jobs of a document, then what was left out on purpose."""
    place = str(path)
    rows = JobRows(place, options, options.settings.get("cluster"))
    steps = 0
    for member in members(path, "jobs"):
        if isinstance(member, Problem):
            yield member
            continue
        try:
            job = _job(member.content)
        except ValueError as error:
            yield Problem(place, member.line, f"{error}: left out")
            continue
        listed = member.content.get("steps")
        steps += len(listed) if isinstance(listed, list) else 0
        yield from rows.add(job, member.line)
    yield from rows.finish()
    if steps:
        yield Note(place, None, f"{counted(steps, 'step')} inside of jobs: only jobs have rows")


def _job(content: Mapping[str, Any]) -> JobRecord:
    job_id, times = number(content.get("job_id")), content.get("time")
    if not job_id or not isinstance(times, dict):
        raise ValueError("an object without job_id and time: not a job of `sacct --json`")
    state = _state(content.get("state"))
    start, end, submit = (number(times.get(name)) or None for name in ("start", "end", "submission"))
    if max(start or 0, end or 0, submit or 0) > _LATEST_S:
        raise ValueError(f"job {job_id}: a time that cannot be")
    node_list = _node_list(content.get("nodes"))
    elapsed = number(times.get("elapsed"))
    has_started = state not in WAITING_STATES and (node_list is not None or bool(elapsed))
    ended = state in ENDED_STATES if state is not None else end is not None
    association = _section(content.get("association"))
    allocated = _allocated(content)
    nodes = number(content.get("allocation_nodes"))
    heterogeneous = _section(content.get("het"))
    whole_id = number(heterogeneous.get("job_id"))
    return JobRecord(
        str(whole_id or job_id),
        start * 1_000_000 if start and has_started else None,
        end * 1_000_000 if end and ended else None,
        ended,
        elapsed,
        submit * 1_000_000 if submit else None,
        {
            "user": _text(content.get("user")) or _text(association.get("user")),
            "project": _text(content.get("account")) or _text(association.get("account")),
            "name": _text(content.get("name")),
            "cluster": _text(content.get("cluster")) or _text(association.get("cluster")),
            "state": state,
            "node_list": node_list,
        },
        nodes if nodes is not None else allocated.get("node"),
        allocated.get("cpu"),
        number(heterogeneous.get("job_offset")) or 0 if whole_id else None,
    )


def number(value: object) -> int | None:
    """A whole number, plain or in the later form; None where it is not set, infinite, or something else."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set") is True and value.get("infinite") is not True else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return count_in_json(value)


def _state(value: object) -> str | None:
    """`{"current": "COMPLETED"}`, or a list: the first that says whether it has ended, or the first at all."""
    current = _section(value).get("current", value)
    listed = current if isinstance(current, list) else [current]
    texts = [text for text in listed if isinstance(text, str) and text]
    return next((text for text in texts if text in ENDED_STATES), texts[0] if texts else None)


def _node_list(value: object) -> str | None:
    if isinstance(value, list):
        value = ",".join(item for item in value if isinstance(item, str))
    text = _text(value)
    return None if text is None or text.lower() == "none assigned" else text


def _allocated(content: Mapping[str, Any]) -> dict[str, int | None]:
    listed = _section(content.get("tres")).get("allocated")
    resources = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return {str(item.get("type")): number(item.get("count")) for item in resources}


def _section(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
