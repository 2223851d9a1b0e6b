"""The health of a running agent, from the status file in its spool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from iolens.agent.exporter import metrics
from iolens.agent.exporter.reading import MetricReading
from iolens.agent.exporter.text import Lines, add, labels
from iolens.agent.sampling.health import STATUS_FILE

LARGEST_BYTES: Final = 1 << 16


def read_agent(spool: Path) -> MetricReading[list[str]]:
    """What `iolens collect` last wrote of itself; the age of its last tick tells whether it still runs."""
    path = spool / STATUS_FILE
    try:
        said = _status(path)
    except OSError as error:
        return MetricReading({}, 1, f"{path}: {error.strerror}")
    except ValueError:
        return MetricReading({}, 1, f"{path}: not JSON")
    if not isinstance(said, dict):
        return MetricReading({}, 1, f"{path}: not the status of an agent")
    return _reading(said)


def last_tick_age_s(spool: Path, now_s: float) -> float | None:
    """Seconds since the agent's last tick; None where its status does not say."""
    try:
        time_us = _status(spool / STATUS_FILE)["time"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return now_s - time_us / 1e6 if _is_number(time_us) else None


def _status(path: Path) -> Any:
    with path.open("rb") as stream:
        return json.loads(stream.read(LARGEST_BYTES))


def _reading(said: Mapping[str, Any]) -> MetricReading[list[str]]:
    lines: Lines = {}
    problems = 0
    for name, metric in metrics.AGENT_FIELDS.items():
        if _is_number(said.get(name)):
            add(lines, metric, "", said[name])
        else:
            problems += 1
    if _is_number(said.get("time")):
        add(lines, metrics.AGENT_LAST_TICK, "", said["time"] / 1e6)
    else:
        problems += 1
    add(lines, metrics.AGENT_TROUBLE, "", int(bool(said.get("trouble"))))
    add(lines, metrics.AGENT, labels(host=str(said.get("host", "")), run=str(said.get("run", ""))), 1)
    return MetricReading(lines, problems)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300  # false for nan
