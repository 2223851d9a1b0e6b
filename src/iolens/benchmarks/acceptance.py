"""An acceptance suite made from a workload model (SPEC B10): job files, and `suite.toml` with what must be reached.

Four saturating steps measure bandwidth (the size that carries the most bytes) and operations (the size that most
requests have) of each direction; the workload itself must be served as it comes, with the delays that its own rate
allows. Limits are the model's demand at a percentile, times SSI; they are plain numbers in a file, to be edited.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, replace
from math import isfinite, log, sqrt
from pathlib import Path
from typing import Any, Final, Literal, get_args

from iolens.benchmarks.synthetic_fio import (
    LAYOUT,
    WORKLOAD,
    FioWorkload,
    TrafficBounds,
    fio_workload,
    layout_text,
    most_bytes,
    most_requests,
    saturating_text,
    workload_text,
)
from iolens.benchmarks.synthetic_ior import SCRIPT, write_ior
from iolens.errors import InputError, UsageError
from iolens.models.acceptance import MEASURES, Kind, Limit
from iolens.models.workload_model import DIRECTIONS, DrawnDemand, WorkloadModel, drawn_demand

SUITE: Final = "suite.toml"
FORMAT: Final = "iolens acceptance suite, version 1"
PERCENTILE: Final = 95.0
SERVED_PCT: Final = 95.0  # of the requests offered
MIX_POINTS: Final = 5.0  # how far a size's share may be from the model's
DEVIATIONS: Final = 3.0  # of what is drawn at random
WORKLOAD_SHARE: Final = 0.5  # of the time; the saturating steps share the rest
EXPONENTIAL_P99: Final = log(100.0)  # 99th percentile ÷ mean of exponential times
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")  # it names a folder


@dataclass(frozen=True, slots=True)
class SuiteStep:
    """One job of a suite. `requests` and `sizes` are what the workload offers, by direction."""

    name: str
    kind: Kind
    job: str
    limits: tuple[Limit, ...]
    requests: dict[str, float] | None = None
    sizes: dict[str, dict[int, float]] | None = None

    @property
    def tool(self) -> str:
        """What runs it."""
        return "ior" if self.kind == "script" else "fio"


@dataclass(frozen=True, slots=True)
class Suite:
    """What `suite.toml` says."""

    filesystem: str
    ssi: float
    share: float
    percentile: float
    file_bytes: int
    jobs: int
    direct: bool
    steps: tuple[SuiteStep, ...]


def write_acceptance(
    model: WorkloadModel,
    directory: Path,
    bounds: TrafficBounds,
    percentile: float = PERCENTILE,
    latency_limit_s: float | None = None,
) -> list[Path]:
    """The suite in `directory`; returns what was written."""
    if not 0 < percentile <= 100:
        raise UsageError(f"--percentile is above 0 and at most 100, not {percentile:g}")
    demand = drawn_demand(model, bounds.targets(model))
    workload_bounds = replace(bounds, max_s=WORKLOAD_SHARE * bounds.max_s, log=True)
    workload = fio_workload(model, workload_bounds, demand)
    suite = _suite(model, bounds, workload, _Needs(demand, bounds, percentile, latency_limit_s))
    texts = {
        LAYOUT: layout_text(workload.file_bytes, bounds),
        WORKLOAD: workload_text(workload, workload_bounds, [f"Workload of {model.filesystem}, as {SUITE} limits it."]),
        **_saturating(workload, bounds),
        SUITE: suite_text(suite),
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (directory / name).write_text(text, "utf-8")
    return [*(directory / name for name in texts), *write_ior(model, directory, bounds)]


@dataclass(frozen=True, slots=True)
class _Needs:
    """What the tested system must do."""

    demand: DrawnDemand
    bounds: TrafficBounds
    percentile: float
    latency_limit_s: float | None

    def rate(self, measure: Literal["bytes", "requests"], direction: str) -> Limit:
        """Bandwidth or operations of one direction."""
        level = self.demand.percentile(measure, direction, self.percentile)
        if level <= 0:
            raise UsageError(
                f"{self.percentile:g} % of the time the model has no {direction}s: name a higher --percentile"
            )
        name = f"{direction}_{'bytes' if measure == 'bytes' else 'ops'}_per_s"
        reason = f"{self.percentile:g}th percentile of demand × SSI {self.bounds.ssi:g}"
        return Limit(name, self.bounds.ssi * level, None, reason)

    def latency(self, direction: str) -> Limit:
        """With Q requests in flight, a rate is only served while they take Q ÷ rate on average (Little's law)."""
        if self.latency_limit_s is not None:
            return Limit(f"{direction}_p99_s", None, self.latency_limit_s, "given")
        flying = self.bounds.jobs * (self.bounds.queue_depth if self.bounds.direct else 1)
        rate = self.bounds.ssi * self.demand.percentile("requests", None, self.percentile)
        reason = f"{flying} in flight ÷ {rate:.4g} requests/s, × ln 100 for the slowest hundredth"
        return Limit(f"{direction}_p99_s", None, EXPONENTIAL_P99 * flying / rate, reason)


def _suite(model: WorkloadModel, bounds: TrafficBounds, workload: FioWorkload, needs: _Needs) -> Suite:
    steps = [
        *(_saturating_step(direction, "bandwidth", needs.rate("bytes", direction)) for direction in ("write", "read")),
        *(_saturating_step(kind, "operations", needs.rate("requests", kind)) for kind in ("write", "read")),
        SuiteStep(
            "workload",
            "workload",
            WORKLOAD,
            (
                _served_limit(sum(workload.offered(direction) for direction in DIRECTIONS)),
                *(needs.latency(direction) for direction in DIRECTIONS),
                _mix_limit(min(workload.offered(direction) for direction in DIRECTIONS)),
            ),
            {direction: workload.offered(direction) for direction in DIRECTIONS},
            {direction: workload.size_shares(direction) for direction in DIRECTIONS},
        ),
        SuiteStep("ior", "script", SCRIPT, ()),
    ]  # fmt: skip
    return Suite(
        model.filesystem, bounds.ssi, bounds.share_of(model), needs.percentile, workload.file_bytes, bounds.jobs,
        bounds.direct, tuple(steps),
    )  # fmt: skip


def _served_limit(requests: float) -> Limit:
    """Requests come at random: so many vary by their square root, which is not the system's fault."""
    least = max(SERVED_PCT - 100.0 * DEVIATIONS / sqrt(requests), 0.0)
    reason = f"served of {requests:,.0f} requests that come at random, {SERVED_PCT:g} % less their usual variation"
    return Limit("served_pct", least, None, reason)


def _mix_limit(requests: float) -> Limit:
    """Sizes are drawn at random, too: a share of few requests is not exact."""
    most = max(MIX_POINTS, 50.0 * DEVIATIONS / sqrt(max(requests, 1.0)))
    return Limit("size_deviation_points", None, most, "whether the load was the model's: shares of request sizes")


def _saturating_step(direction: str, kind: Kind, limit: Limit) -> SuiteStep:
    return SuiteStep(f"{direction}-{kind}", kind, f"{direction}-{kind}.fio", (limit,))


def _saturating(workload: FioWorkload, bounds: TrafficBounds) -> dict[str, str]:
    runtime = (1.0 - WORKLOAD_SHARE) * bounds.max_s / 4
    chosen = {"bandwidth": most_bytes, "operations": most_requests}
    return {
        f"{direction}-{kind}.fio": saturating_text(
            direction, choose(workload.sizes[direction]), runtime, workload.file_bytes, bounds
        )
        for kind, choose in chosen.items()
        for direction in DIRECTIONS
    }


# suite.toml


def suite_text(suite: Suite) -> str:
    """The suite as TOML."""
    lines = [
        f"format = {json.dumps(FORMAT)}",
        f"filesystem = {_toml(suite.filesystem)}  # whose workload it is",
        f"ssi = {suite.ssi!r}  # how many times the work of that system",
        f"share = {suite.share!r}  # of its traffic",
        f"percentile = {suite.percentile!r}  # of its demand, over all times",
        f"file_bytes = {suite.file_bytes}  # of each process",
        f"jobs = {suite.jobs}",
        f"direct = {str(suite.direct).lower()}  # around the page cache",
    ]
    for step in suite.steps:
        lines += [
            "",
            "[[steps]]",
            f"name = {_toml(step.name)}",
            f"kind = {_toml(step.kind)}",
            f"job = {_toml(step.job)}",
        ]
        if step.requests is not None and step.sizes is not None:
            lines.append(
                f"requests = {{ {', '.join(f'{name} = {count!r}' for name, count in step.requests.items())} }}"
            )
            for side, shares in step.sizes.items():
                pairs = ", ".join(f"{size} = {share!r}" for size, share in shares.items())
                lines.append(f"{side}_sizes = {{ {pairs} }}")
        for limit in step.limits:
            lines += ["", "[[steps.limits]]", f"measure = {_toml(limit.measure)}"]
            lines += [f"at_least = {limit.at_least!r}"] if limit.at_least is not None else []
            lines += [f"at_most = {limit.at_most!r}"] if limit.at_most is not None else []
            lines.append(f"reason = {_toml(limit.reason)}")
    return "\n".join(lines) + "\n"


def read_suite(directory: Path) -> Suite:
    """The suite of a directory, checked."""
    path = directory / SUITE
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise InputError(str(path), "no such file", "a directory of `iolens synthesize acceptance`") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"no TOML: {error}") from error
    if document.get("format") != FORMAT:
        raise InputError(str(path), f"format {document.get('format')!r}", repr(FORMAT))
    reader = _SuiteReader(path)
    steps = reader.of(document, "steps", list)
    return Suite(
        reader.of(document, "filesystem", str),
        reader.number(document, "ssi"),
        reader.number(document, "share"),
        reader.number(document, "percentile"),
        round(reader.number(document, "file_bytes")),
        round(reader.number(document, "jobs")),
        reader.of(document, "direct", bool),
        tuple(reader.step(step) for step in steps),
    )


@dataclass(frozen=True, slots=True)
class _SuiteReader:
    """Values of a suite, each with the place it stands in when it is wrong."""

    path: Path

    def of(self, table: dict[str, Any], key: str, kind: type) -> Any:
        """A value of that type."""
        value = table.get(key)
        if not isinstance(value, kind):
            raise InputError(str(self.path), f"{key} = {value!r}", kind.__name__)
        return value

    def number(self, table: dict[str, Any], key: str) -> float:
        """A finite number that is not negative."""
        value = table.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
            raise InputError(str(self.path), f"{key} = {value!r}", "a number")
        return float(value)

    def step(self, table: object) -> SuiteStep:
        """One of `[[steps]]`; its job is a file of the suite, nowhere else."""
        if not isinstance(table, dict):
            raise InputError(str(self.path), f"steps: {table!r}", "[[steps]]")
        name, kind, job = (self.of(table, key, str) for key in ("name", "kind", "job"))
        if kind not in get_args(Kind):
            raise InputError(str(self.path), f"kind = {kind!r}", ", ".join(get_args(Kind)))
        if not _NAME.fullmatch(name):
            raise InputError(str(self.path), f"name = {name!r}", "small letters, digits and hyphens")
        if Path(job).name != job or not (self.path.parent / job).is_file():
            raise InputError(str(self.path), f"job = {job!r}", "a file beside it")
        limits = tuple(self.limit(item) for item in table.get("limits", []))
        if "requests" not in table:
            return SuiteStep(name, kind, job, limits)
        requests = {direction: self.number(self.of(table, "requests", dict), direction) for direction in DIRECTIONS}
        return SuiteStep(
            name,
            kind,
            job,
            limits,
            requests,
            {direction: self.sizes(table, f"{direction}_sizes") for direction in DIRECTIONS},
        )

    def sizes(self, table: dict[str, Any], key: str) -> dict[int, float]:
        """Shares by size."""
        shares = self.of(table, key, dict)
        if not all(size.isascii() and size.isdigit() for size in shares):
            raise InputError(str(self.path), f"{key} = {shares!r}"[:120], "sizes in bytes = shares")
        return {int(size): self.number(shares, size) for size in shares}

    def limit(self, table: object) -> Limit:
        """One of `[[steps.limits]]`."""
        if not isinstance(table, dict) or table.get("measure") not in MEASURES:
            raise InputError(str(self.path), f"limit {table!r}"[:120], f"measure = one of {', '.join(MEASURES)}")
        ends = [self.number(table, key) if key in table else None for key in ("at_least", "at_most")]
        if ends == [None, None]:
            raise InputError(str(self.path), f"limit of {table['measure']}", "at_least or at_most")
        return Limit(table["measure"], ends[0], ends[1], str(table.get("reason", "")))


def _toml(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
