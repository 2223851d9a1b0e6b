"""Calibrations: what a disk I/O costs, measured, fitted, stored and compared."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.options import BYTES, DURATION, TIME, QuantityType, in_zone, present, progress, store_options

if TYPE_CHECKING:
    from iolens.analyses.calibration.fit import CalibrationFit
    from iolens.benchmarks.device_counters import DeviceCounters
    from iolens.benchmarks.sweep import Plan, Tool, Values
    from iolens.config import Config

SOURCE = "calibrate"  # what rows of our own sweeps say wrote them
INTERRUPTED = 130


def _sizes(text: str) -> tuple[int, ...]:
    from iolens.units import parse_bytes

    sizes = tuple(sorted({parse_bytes(word) for word in text.split(",") if word.strip()}))
    if not sizes or any(size < 512 or size % 512 for size in sizes):
        raise ValueError(f"{text!r}: sizes are multiples of 512 bytes, such as 4KiB,64KiB,1MiB")
    return sizes


SIZES = QuantityType("sizes", _sizes)
FORMATS = click.Choice(["table", "json", "csv", "parquet", "markdown"])


@click.group("calibrate")
def COMMAND() -> None:
    """Measure what a disk I/O costs, fit it, store it, compare it."""


@COMMAND.command(
    epilog="""\b
Examples:
  iolens calibrate run /scratch/test --size 64GiB -f scratch --store centre
  iolens calibrate run /scratch/test --ior --jobs 16 --size 1TiB
  iolens calibrate run /dev/sdx --destroy-data --size 100GiB -o sdx.json
"""
)
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|DEVICE")
@click.option("--size", "file_bytes", type=BYTES, default="4GiB", show_default=True, help="Size of the file")
@click.option("--sizes", type=SIZES, metavar="LIST", help="Transfer sizes [4KiB to 4MiB by powers of two]")
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Runs of each size")
@click.option("--runtime", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Time of each run")
@click.option(
    "--queue-depth", type=click.IntRange(1), default=4, show_default=True, help="I/Os in flight per job (fio)"
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes; MPI tasks with --ior")
@click.option("--ior", "with_ior", is_flag=True, help="Drive IOR instead of fio")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher for IOR, such as 'srun -n {tasks}' [mpirun, …]")
@click.option("--lustre-root", type=click.Path(path_type=Path), help="Root of the Lustre server that serves DIR")
@click.option("--target", "targets", metavar="NAMES", help="Its targets whose brw_stats tell what the disks saw")
@click.option("--asymptote/--no-asymptote", default=True, help="Also measure by size of file, to catch a cache")
@click.option("--buffered", is_flag=True, help="Where O_DIRECT does not work: measure through memory all the same")
@click.option("--realtime", is_flag=True, help="Run ahead of other programs, on a busy machine (needs the right)")
@click.option("--destroy-data", is_flag=True, help="DEVICE may be overwritten: everything on it is lost")
@click.option("--filesystem", "-f", metavar="NAME", help="File system the results belong to")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the runs here as JSON")
@store_options
def run(
    place: Path,
    file_bytes: int,
    sizes: tuple[int, ...] | None,
    repeats: int,
    runtime: float,
    queue_depth: int,
    jobs: int,
    with_ior: bool,
    launcher: str | None,
    lustre_root: Path | None,
    targets: str | None,
    asymptote: bool,
    buffered: bool,
    realtime: bool,
    destroy_data: bool,
    filesystem: str | None,
    output: Path | None,
    store: str | None,
    config: str | None,
) -> int:
    """Sweep transfer sizes with random offsets, writes then reads, and record what the disk saw.

    At the end fio reads and writes all sizes at once: the FSU of a full disk, which saturation is measured against.

    Lays out one file of --size in DIR (removed afterwards, whatever happens), or overwrites DEVICE. The runs go to the
    store, or with --output to a file (to both if --store is given too). Ctrl-C ends it; the runs so far are kept.
    """
    from iolens.benchmarks.safety import check_plan
    from iolens.benchmarks.sweep import TRANSFER_SIZES, Plan
    from iolens.config import load_config

    known = load_config(config)
    plan = Plan(
        place, file_bytes, sizes or TRANSFER_SIZES, repeats, runtime, queue_depth, jobs,
        direct=not buffered, realtime=realtime, guard=asymptote, filesystem=filesystem,
    )  # fmt: skip
    _check_realtime(realtime)
    for warning in check_plan(plan, destroy_data):
        click.echo(f"warning: {warning}", err=True)
    tool = _tool(plan, with_ior, launcher)
    counters = _counters(plan, lustre_root, targets)
    rows, whole, trouble = _collect_rows(plan, tool, counters)
    _keep(plan, tool.name, rows, whole, output, known, store)
    if trouble is not None:
        raise trouble
    return 0 if whole else INTERRUPTED


def _check_realtime(wanted: bool) -> None:
    from iolens.benchmarks.programs import may_raise_priority

    if wanted and not may_raise_priority():
        raise click.UsageError("--realtime: this user may not run programs ahead of others (root or CAP_SYS_NICE)")


def _tool(plan: Plan, with_ior: bool, launcher: str | None) -> Tool:
    from iolens.benchmarks.fio_sweep import FioTool
    from iolens.benchmarks.ior_sweep import IorTool

    if with_ior and plan.is_device:
        raise click.UsageError("--ior works on files: name a directory, or leave it out to use fio on the device")
    return IorTool(plan, launcher) if with_ior else FioTool(plan)


def _counters(plan: Plan, lustre_root: Path | None, targets: str | None) -> DeviceCounters | None:
    """What is observed, said in one line."""
    from iolens.benchmarks.device_counters import BlockDeviceCounters, LustreTargetCounters, underlying_device

    if (lustre_root is None) != (targets is None):
        raise click.UsageError("--lustre-root and --target belong together: the server's root, and its targets")
    if lustre_root is not None and targets is not None:
        lustre = LustreTargetCounters(tuple(name.strip() for name in targets.split(",") if name.strip()), lustre_root)
        lustre.read()  # fails now, not after the first run
        click.echo(f"observing brw_stats of {lustre.name}", err=True)
        return lustre
    found = underlying_device(plan.place)
    if found.device is None:
        click.echo(f"warning: {found.why}; only requested sizes can be fitted", err=True)
        return None
    click.echo(f"observing {found.why}", err=True)
    return BlockDeviceCounters(found.device)


def _collect_rows(
    plan: Plan, tool: Tool, counters: DeviceCounters | None
) -> tuple[list[Values], bool, Exception | None]:
    """The runs until the end, Ctrl-C or a failure; whether all came, and the failure."""
    import signal

    from iolens.benchmarks.sweep import run_sweep, sweep_points
    from iolens.errors import IolensError

    rows: list[Values] = []
    points = sweep_points(plan, tool)
    click.echo(f"{len(points)} runs of {plan.runtime_s:g} s on {plan.file}", err=True)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)  # a batch system's way to end us: clean up as for Ctrl-C
    try:
        with progress(len(points) + 1, "calibrating") as step:
            said = step if sys.stderr.isatty() else lambda text: click.echo(text, err=True)
            for row in run_sweep(plan, tool, counters, said):
                rows.append(row)
    except KeyboardInterrupt:
        click.echo(f"interrupted after {_runs(rows)} of {len(points)} runs; the file is removed", err=True)
        return rows, False, None
    except (IolensError, OSError) as error:
        return rows, False, error
    finally:
        signal.signal(signal.SIGTERM, before)
    return rows, True, None


def _runs(rows: list[Values]) -> int:
    """A run that reads and writes at once has a row for each."""
    return len({row["run_id"] for row in rows})


def _keep(
    plan: Plan, tool: str, rows: list[Values], whole: bool, output: Path | None, config: Config, store: str | None
) -> None:
    from functools import partial

    from iolens.benchmarks.sweep import sweep_document
    from iolens.records import Capture, Row
    from iolens.store.store import Store
    from iolens.views.render import atomic

    if not rows:
        return
    if output is not None:
        atomic.write(output, sweep_document(plan, tool, rows, whole))
        click.echo(f"{output}: {_runs(rows)} runs; fit them with: iolens calibrate fit {output}")
    if output is None or store is not None:
        opened = Store(config.store_url(store))
        items = [Row("benchmark_runs", row) for row in rows]
        opened.ingest([Capture(str(plan.place), f"sweep/{plan.sweep}", partial(iter, items))], SOURCE)
        click.echo(f"{opened.url}: {_runs(rows)} runs; fit them with: iolens calibrate fit {plan.sweep}")


@COMMAND.command(
    epilog="""\b
Examples:
  iolens calibrate fit                                    the last sweep in the store
  iolens calibrate fit sdx.json --figure prediction=fit.png
  iolens calibrate fit ior-*.json --queue-depth 4 --format json
  iolens calibrate fit --save scratch-2026 -f scratch --target-class ssd
"""
)
@click.argument("what", nargs=-1, metavar="[SWEEP|FILE]...")
@click.option("--queue-depth", type=click.IntRange(1), help="Only runs with so many I/Os in flight")
@click.option(
    "--access", type=click.Choice(["random", "sequential", "any"]), default="random", show_default=True,
    help="Only runs of this kind",
)  # fmt: skip
@click.option(
    "--repeats", type=click.Choice(["all", "median", "best"]), default="all", show_default=True,
    help="Which runs of one point count; best: where others disturbed the machine",
)  # fmt: skip
@click.option("--tool", metavar="NAME", help="Only runs of this benchmark: fio or ior")
@click.option("--min-aggregate", type=BYTES, metavar="SIZE", help="Only runs on files of at least this size together")
@click.option("--from", "since", type=TIME, metavar="TIME", help="Only stored runs from here on")
@click.option("--to", "until", type=TIME, metavar="TIME", help="Only stored runs before this")
@click.option("--save", "name", metavar="NAME", help="Store the coefficients as a calibration")
@click.option(
    "--save-sizes",
    type=click.Choice(["observed", "requested"]),
    help="Which fit to store [observed where there is one]",
)
@click.option("--filesystem", "-f", metavar="NAME", help="File system of the runs, and of the calibration")
@click.option("--target-class", metavar="NAME", help="Class of targets the calibration holds for")
@click.option("--valid-from", type=TIME, metavar="TIME", help="First moment it holds for [the last run]")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json", "csv", "parquet", "markdown"]), default="table"
)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@click.option(
    "--figure", "figures", multiple=True, metavar="[NAME=]FILE",
    help="prediction, bandwidth, sizes or asymptote (.svg .png .pdf .html); repeatable; `--figure list` names them",
)  # fmt: skip
@store_options
def fit(
    what: tuple[str, ...],
    queue_depth: int | None,
    access: str,
    repeats: Any,
    tool: str | None,
    min_aggregate: int | None,
    since: datetime | None,
    until: datetime | None,
    name: str | None,
    save_sizes: Any,
    filesystem: str | None,
    target_class: str | None,
    valid_from: datetime | None,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
    store: str | None,
    config: str | None,
) -> None:
    """Fit the transaction model t = a0 + a1·b to runs, by the sizes asked for and by those at the disk.

    Takes files (of `calibrate run`, IOR or fio), names of sweeps in the store, or else stored runs: the last sweep, or
    all that the options leave.
    """
    from iolens.analyses.calibration.fit import calibration_fit
    from iolens.config import load_config

    known = load_config(config)
    filtered = any(one is not None for one in (since, until, tool, filesystem))
    rows = _rows_of(what, known, store) if what else _stored_rows(known, store, last_sweep=not filtered)
    rows = list(_narrowed(rows, tool, filesystem if not what else None, in_zone(since, None), in_zone(until, None)))
    result = calibration_fit(
        rows, queue_depth=queue_depth, access=access, repeats=repeats, minimum_aggregate_bytes=min_aggregate
    )
    present(result, format_, output, figures)
    if name is not None:
        place = filesystem or _only_filesystem(rows)
        _save(result, name, save_sizes, place, target_class, in_zone(valid_from, None), known, store)


def _rows_of(what: tuple[str, ...], config: Config, store: str | None) -> list[dict[str, Any]]:
    """Runs of files and of sweeps, each word the one or the other."""
    rows: list[dict[str, Any]] = []
    stored: list[dict[str, Any]] | None = None
    for word in what:
        path = Path(word)
        if path.exists():
            for file in sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]:
                rows += _rows_of_file(file)
            continue
        stored = _stored_rows(config, store) if stored is None else stored
        mine = [row for row in stored if row["sweep"] == word]
        if not mine:
            names = sorted({row["sweep"] for row in stored if row["sweep"]})
            raise click.UsageError(
                f"{word}: no such file, nor a sweep in the store; there are: {', '.join(names) or 'none'}"
            )
        rows += mine
    return rows


def _rows_of_file(path: Path) -> list[dict[str, Any]]:
    from iolens.benchmarks.sweep import rows_of_document
    from iolens.errors import InputError
    from iolens.records import Problem, Row
    from iolens.sources import ReadOptions, recognise

    own = rows_of_document(path.read_text("utf-8", "replace"))
    if own is not None:
        return own
    source = recognise(path)
    if source.name not in ("fio", "ior"):
        raise InputError(str(path), f"this is {source.name}", "results of fio, IOR or `iolens calibrate run`")
    rows = []
    for capture in source.captures([path], ReadOptions()):
        for item in capture.items():
            if isinstance(item, Row):
                rows.append(dict(item.values))
            elif isinstance(item, Problem):
                click.echo(str(item), err=True)
    return rows


def _stored_rows(config: Config, store: str | None, last_sweep: bool = False) -> list[dict[str, Any]]:
    from iolens.errors import UsageError
    from iolens.store.store import Store

    opened = Store(config.store_url(store))
    opened.check_that_it_exists()
    rows: list[dict[str, Any]] = opened.benchmark_runs()
    if not rows:
        raise UsageError(f"{opened.url} holds no benchmark runs: `iolens calibrate run`, or name files of results")
    sweeps = [row for row in rows if row["sweep"]]
    if last_sweep and sweeps:
        newest = max(sweeps, key=lambda row: row["time"] or 0)["sweep"]
        return [row for row in sweeps if row["sweep"] == newest]
    return rows


def _narrowed(
    rows: Iterable[dict[str, Any]],
    tool: str | None,
    filesystem: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Iterable[dict[str, Any]]:
    from iolens.units import epoch_us

    for row in rows:
        moment = row.get("time")
        if (tool is None or row.get("tool") == tool) and (filesystem is None or row.get("filesystem") == filesystem):
            begins = since is None or (moment is not None and moment >= epoch_us(since))
            if begins and (until is None or (moment is not None and moment < epoch_us(until))):
                yield row


def _only_filesystem(rows: list[dict[str, Any]]) -> str | None:
    names = {row.get("filesystem") for row in rows} - {None}
    return str(names.pop()) if len(names) == 1 else None


def _save(
    result: CalibrationFit,
    name: str,
    sizes: Any,
    filesystem: str | None,
    target_class: str | None,
    valid_from: datetime | None,
    config: Config,
    store: str | None,
) -> None:
    import time

    from iolens.store.store import Store
    from iolens.units import epoch_us

    record = result.record(name, sizes)
    opened = Store(config.store_url(store))
    opened.add_calibration(
        {
            **record,
            "time": time.time_ns() // 1000,
            "source": SOURCE,
            "filesystem": filesystem,
            "target_class": target_class,
            "valid_from": epoch_us(valid_from) if valid_from is not None else result.last_run_us,
        }
    )
    click.echo(f"stored {name} in {opened.url} ({record['evidence']})", err=True)


@COMMAND.command(epilog="Example: iolens calibrate show --store centre")
@click.option("--filesystem", "-f", metavar="NAME", help="Only those of this file system, and how they changed")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json", "csv", "parquet", "markdown"]), default="table"
)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write here")
@store_options
def show(filesystem: str | None, format_: str, output: Path | None, store: str | None, config: str | None) -> None:
    """List stored, configured and shipped calibrations, what they mean, and how they changed over time."""
    from iolens.analyses.calibration.stored import KnownCalibrations, drift, known_calibrations
    from iolens.config import load_config
    from iolens.store.store import Store

    found = load_config(config)
    opened = Store(found.store_url(store))
    if store is not None:
        opened.check_that_it_exists()
    known = known_calibrations(opened.calibrations(), found)
    if filesystem is not None:
        known = [one for one in known if one.filesystem == filesystem]
    result = KnownCalibrations(known, drift(known))
    if format_ == "table" and output is None:
        _list(result)
    else:
        present(result, format_, output, ())


def _list(result: Any) -> None:
    """Two lines per calibration and its ceiling where one was measured, then the drift."""
    from iolens.units import MIB
    from iolens.views.render.formats import tables_of
    from iolens.views.render.tables import to_terminal

    for one in result.calibrations:
        of_class = f" [{one.target_class}]" if one.target_class else ""
        click.echo(f"{one.calibration.name}{of_class}  {one.origin}")
        for direction in ("write", "read"):
            cost = one.calibration.of(direction)
            limits = f"{cost.bytes_per_s_limit / MIB:,.0f} MiB/s, {cost.iops_limit:,.0f} IOPS at most"
            click.echo(f"  {direction:5} {cost.latency_s:.4g} s + {cost.s_per_byte:.4g} s/byte: {limits}")
        if one.ceiling_fsu_pct is not None:
            click.echo(f"  full at an FSU of {one.ceiling_fsu_pct:.1f} %, as a saturating test showed")
    if result.drift:
        click.echo()
        click.echo(to_terminal(tables_of(result)[1:]), nl=False)


@COMMAND.command(
    epilog="""\b
Example:
  iolens calibrate add hopper-2012 --filesystem scratch --from 2012-10-01
    --write 1.04e-3,4.55e-9 --read 8.02e-4,1.23e-9 --evidence "IOR sweep of October 2012"
"""
)
@click.argument("name")
@click.option("--filesystem", "-f", metavar="NAME", help="File system it holds for; left out: only by name")
@click.option("--target-class", metavar="NAME", help="Class of targets it holds for; left out: all")
@click.option("--write", "write_cost", required=True, metavar="LATENCY,S_PER_BYTE", help="w0 in seconds, w1 in s/byte")
@click.option("--read", "read_cost", required=True, metavar="LATENCY,S_PER_BYTE", help="r0 in seconds, r1 in s/byte")
@click.option("--from", "valid_from", type=TIME, metavar="TIME", help="First moment it holds for")
@click.option("--queue-depth", type=int, help="Transfers in flight while it was measured")
@click.option(
    "--ceiling", type=click.FloatRange(0, min_open=True), metavar="PCT", help="FSU seen while a saturating test ran"
)
@click.option("--evidence", default="given on the command line", show_default=True, help="Where the numbers come from")
@store_options
def add(
    name: str,
    filesystem: str | None,
    target_class: str | None,
    write_cost: str,
    read_cost: str,
    valid_from: datetime | None,
    queue_depth: int | None,
    ceiling: float | None,
    evidence: str,
    store: str | None,
    config: str | None,
) -> None:
    """Store known coefficients under NAME; utilization then finds them by file system and date."""
    import time

    from iolens.config import load_config
    from iolens.store.store import Store
    from iolens.units import epoch_us

    moment = in_zone(valid_from, None)
    (write_latency, write_rate), (read_latency, read_rate) = _cost(write_cost, "--write"), _cost(read_cost, "--read")
    opened = Store(load_config(config).store_url(store))
    opened.add_calibration(
        {
            "time": time.time_ns() // 1000,
            "source": "command line",
            "filesystem": filesystem,
            "name": name,
            "target_class": target_class,
            "valid_from": epoch_us(moment) if moment else None,
            "write_latency_s": write_latency,
            "write_s_per_byte": write_rate,
            "read_latency_s": read_latency,
            "read_s_per_byte": read_rate,
            "queue_depth": queue_depth,
            "ceiling_fsu_pct": ceiling,
            "evidence": evidence,
        }
    )
    click.echo(f"stored {name} in {opened.url}")


def _cost(text: str, option: str) -> tuple[float, float]:
    """Two positive numbers."""
    try:
        latency, rate = (float(word) for word in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: write two numbers, such as 1.04e-3,1.73e-9", param_hint=option) from None
    if latency <= 0 or rate <= 0:
        raise click.BadParameter(f"{text!r}: both must be positive", param_hint=option)
    return latency, rate
