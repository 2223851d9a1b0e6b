"""A workload model as a readable TOML file (`kind = "synthetic"`): `synthesize model` writes it, people may edit it.

Shares of sizes may have any scale. An unknown key is refused, never ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from iolens.errors import InputError
from iolens.models.workload_model import SHARES, DirectionModel, Marginal, WorkloadModel
from iolens.schema import DIRECTIONS
from iolens.simulator.toml_section import TomlSection, read_toml
from iolens.simulator.workload import FOLDER
from iolens.units import parse_bytes

KIND: Final = "synthetic"
BANDWIDTH, SECONDS = "_bytes_per_s", "_s"  # how the keys of a marginal end
LARGEST: Final = 1e18
SMALLEST: Final = 1e-9
_ANY_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_PER_LINE: Final = 10  # quantiles


def shipped_models() -> list[str]:
    """Names of the models that come with iolens."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if read_toml(path).get("kind") == KIND)


def is_model(name: str) -> bool:
    """Whether a shipped name or a file is a workload model, and not a workload of disks."""
    if name in shipped_models():
        return True
    path = Path(name)
    return path.is_file() and "kind" in read_toml(path)


def load_model(name: str) -> WorkloadModel:
    """A shipped model by name, else the one in the file of that name."""
    if name in shipped_models():
        return read_model(FOLDER / f"{name}.toml")
    path = Path(name)
    if not path.is_file():
        raise InputError(name, "no such model", f"a TOML file, or one of: {', '.join(shipped_models())}")
    return read_model(path)


def read_model(path: Path) -> WorkloadModel:
    """Parse and check one file; that its mix can be reached, too."""
    top = TomlSection(path, "", read_toml(path))
    top.matching("kind", re.compile(KIND), f'"{KIND}"')
    rhythm = top.section("rhythm")
    model = WorkloadModel(
        filesystem=top.matching("filesystem", _ANY_NAME, "a name"),
        targets=top.whole("targets", 1, 65535),
        tick_s=_tick(top),
        timezone=_timezone(top),
        read_requests_pct=top.number("read_requests_pct", 0.01, 99.99),
        correlation=top.number("correlation", 0, 0.999),
        hours=rhythm.numbers("hours", 24),
        days=rhythm.numbers("days", 7),
        **{direction: _direction(top.section(direction)) for direction in DIRECTIONS},
    )
    top.finish()
    for key, factors in (("hours", model.hours), ("days", model.days)):
        if not sum(factors):
            rhythm.refuse(key, 0, "a factor above zero")
    try:
        model.balanced()
    except ValueError as error:
        raise InputError(
            str(path), str(error), "another read_requests_pct, interarrival, idle or busy_run_s"
        ) from error
    return model


def model_text(model: WorkloadModel, origin: str) -> str:
    """The file; `origin` says in one line where its numbers come from."""
    return "\n".join(_lines(model, origin)) + "\n"


def _lines(model: WorkloadModel, origin: str) -> Iterator[str]:
    yield from (f"# {line}" for line in origin.splitlines())
    yield f'kind = "{KIND}"'
    yield f"filesystem = {json.dumps(model.filesystem, ensure_ascii=False)}"
    yield f"targets = {model.targets}"
    yield f"tick_s = {_shown(model.tick_s)}  # how often every target is sampled"
    yield f'timezone = "{model.timezone}"  # of the rhythm'
    yield f"read_requests_pct = {_shown(model.read_requests_pct)}  # busy runs are stretched until this comes out"
    yield f"correlation = {_shown(model.correlation)}  # of the bandwidth of two targets: 0 none, towards 1 all alike"
    for direction in DIRECTIONS:
        yield from _direction_lines(direction, model.of(direction))
    yield ""
    yield "[rhythm]  # factors of the bandwidth, 1 is usual"
    yield f"hours = [{', '.join(_shown(hour, 4) for hour in model.hours)}]"
    yield f"days = [{', '.join(_shown(day, 4) for day in model.days)}]  # Monday first"


def _direction_lines(direction: str, model: DirectionModel) -> Iterator[str]:
    yield ""
    yield f"[{direction}]"
    yield f"busy_run_s = {_shown(model.busy_run_s)}  # samples with {direction}s come in runs of this mean length"
    yield from _marginal_lines(f"{direction}.bandwidth", model.bandwidth, BANDWIDTH, "of samples with traffic")
    yield from _marginal_lines(
        f"{direction}.interarrival", model.interarrival, SECONDS, "tick ÷ requests of such samples"
    )
    if model.idle is not None:
        yield from _marginal_lines(f"{direction}.idle", model.idle, SECONDS, f"runs of samples without {direction}s")
    yield ""
    yield f"[{direction}.sizes]  # upper end of a bin = share of the requests"
    for size, share in model.sizes:
        yield f"{_size(size)} = {_shown(share)}"


def _marginal_lines(name: str, marginal: Marginal, unit: str, meaning: str) -> Iterator[str]:
    yield ""
    yield f"[{name}]  # {meaning}"
    if marginal.alpha is None:
        yield f"quantiles{unit} = [  # at 0, 0.01, 0.05, 0.1, 0.2 … 0.9, 1, 2 … 99, 99.1 … 99.9, 99.95, 99.99, 100 %"
        shown = [_shown(quantile) for quantile in marginal.quantiles]
        yield from (f"  {', '.join(part)}," for part in _parts(shown, _PER_LINE))
        yield "]"
        return
    yield f"alpha = {_shown(marginal.alpha)}"
    yield f"xm{unit} = {_shown(marginal.xm)}"
    if marginal.maximum < inf:
        yield f"maximum{unit} = {_shown(marginal.maximum)}"


def _parts(words: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    return (words[first : first + length] for first in range(0, len(words), length))


def _shown(value: float, digits: int = 7) -> str:
    return f"{value:.{digits}g}"


def _size(size: int) -> str:
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _tick(top: TomlSection) -> float:
    seconds = top.number("tick_s", 1e-3, 86400)
    if round(seconds * 1e6) != seconds * 1e6:
        top.refuse("tick_s", seconds, "whole microseconds")
    return seconds


def _timezone(top: TomlSection) -> str:
    name = top.matching("timezone", _ANY_NAME, expected := "a time zone such as Europe/Berlin")
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        top.refuse("timezone", name, expected)
    return name


def _direction(section: TomlSection) -> DirectionModel:
    return DirectionModel(
        bandwidth=_marginal(section.section("bandwidth"), BANDWIDTH),
        interarrival=_marginal(section.section("interarrival"), SECONDS),
        idle=_marginal(section.section("idle"), SECONDS) if "idle" in section.left else None,
        busy_run_s=section.number("busy_run_s", SMALLEST, LARGEST),
        sizes=_sizes(section.section("sizes")),
    )


def _marginal(section: TomlSection, unit: str) -> Marginal:
    if f"quantiles{unit}" in section.left:
        quantiles = section.numbers(f"quantiles{unit}", len(SHARES), LARGEST)
        try:
            return Marginal.of_quantiles(quantiles)
        except ValueError as error:
            raise InputError(str(section.path), f"{section.full('quantiles' + unit)}: {error}") from error
    alpha, xm = section.number("alpha", 0.05, 50), section.number(f"xm{unit}", SMALLEST, LARGEST)
    if f"maximum{unit}" not in section.left:
        return Marginal.pareto(alpha, xm)
    maximum = section.number(f"maximum{unit}", xm, LARGEST)
    if maximum <= xm:
        section.refuse(f"maximum{unit}", maximum, f"more than xm{unit}")
    return Marginal.pareto(alpha, xm, maximum)


def _sizes(section: TomlSection) -> tuple[tuple[int, float], ...]:
    values: dict[int, float] = {}
    for key in list(section.left):
        try:
            size = parse_bytes(key)
        except ValueError:
            size = 0
        if size <= 0 or size in values:
            section.refuse(key, section.left[key], "sizes such as 16KiB, each once")
        values[size] = section.number(key, 0, 1e18)
    total = sum(values.values())
    if total <= 0:
        raise InputError(
            str(section.path), f"{section.where}: no share is above zero", "shares of the requests by size"
        )
    return tuple((size, share / total) for size, share in sorted(values.items()) if share)
