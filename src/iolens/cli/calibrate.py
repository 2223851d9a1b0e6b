"""`iolens calibrate run`: measure what disk I/Os cost, by a sweep or by a light probe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.output_options import output_option, progress
from iolens.cli.shared_store_options import store_options
from iolens.cli.value_types import BYTES, DURATION, WORDS, sizes_type
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.api.calibration import LightOutcome, ReadySweep, SweepRuns
    from iolens.benchmarks.light_probe import LightLimits


# What a disk I/O costs: measured, fitted, stored, compared ------------------------------------------------------------


@verb_group("calibrate", "What a disk I/O costs: measured, fitted, stored, compared")
def calibrate() -> None:
    """Measure what a disk I/O costs, fit it, store it, compare it."""


# Sweep transfer sizes and record what the disk saw --------------------------------------------------------------------

INTERRUPTED = 130
SECTOR = 512


@verb(
    "calibrate run",
    "Sweep transfer sizes and record what the disk saw",
    epilog="""\b
Examples:
  iolens calibrate run /scratch/test --size 64GiB -f scratch --store centre
  iolens calibrate run /scratch/test --ior --jobs 16 --size 1TiB
  iolens calibrate run /scratch/one-ost --light -f scratch --target scratch-OST0003
  iolens calibrate run /dev/sdx --destroy-data --size 100GiB -o sdx.json
""",
)
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|DEVICE")
@click.option("--light", is_flag=True, help="A short, bounded probe of one idle target, where others work too")
@click.option(
    "--seconds", type=click.FloatRange(1), default=120, show_default=True, help="Longest time of a light probe"
)
@click.option(
    "--gib", type=click.FloatRange(0, min_open=True), default=4, show_default=True,
    help="Most data a light probe writes and reads in all, in GiB",
)  # fmt: skip
@click.option("--size", "file_bytes", type=BYTES, default="4GiB", show_default=True, help="Size of the file")
@click.option("--sizes", type=sizes_type(SECTOR), metavar="LIST", help="Transfer sizes [4KiB to 4MiB by powers of two]")
@click.option("--repeats", type=click.IntRange(1), help="Runs of each size [3; 2 with --light]")
@click.option("--runtime", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Time of each run")
@click.option(
    "--queue-depth", type=click.IntRange(1), default=4, show_default=True, help="I/Os in flight per job (fio)"
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes; MPI tasks with --ior")
@click.option("--ior", "with_ior", is_flag=True, help="Drive IOR instead of fio")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher for IOR, such as 'srun -n {tasks}' [mpirun, …]")
@click.option("--lustre-root", type=click.Path(path_type=Path), help="Root of the Lustre server that serves DIR")
@click.option(
    "--target", "targets", type=WORDS, metavar="NAMES",
    help="Targets of that server whose brw_stats count the I/Os at the disks",
)  # fmt: skip
@click.option("--target-class", metavar="NAME", help="Class of targets that the calibration of a light probe is for")
@click.option("--asymptote/--no-asymptote", default=True, help="Also measure with smaller files, to detect a cache")
@click.option("--buffered", is_flag=True, help="Allow buffered I/O if O_DIRECT does not work; this measures memory too")
@click.option("--realtime", is_flag=True, help="Run with real-time priority, on a busy machine (needs the privilege)")
@click.option("--destroy-data", is_flag=True, help="Allow DEVICE to be overwritten: everything on it is lost")
@click.option("--filesystem", "-f", metavar="NAME", help="File system the results belong to")
@output_option("Write the runs here as JSON")
@store_options
def calibrate_run(
    place: Path,
    light: bool,
    seconds: float,
    gib: float,
    file_bytes: int,
    sizes: tuple[int, ...] | None,
    repeats: int | None,
    runtime: float,
    queue_depth: int,
    jobs: int,
    with_ior: bool,
    launcher: str | None,
    lustre_root: Path | None,
    targets: tuple[str, ...] | None,
    target_class: str | None,
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

    At the end fio reads and writes all sizes at once, to measure the FSU of a full disk.

    Writes one file of --size in DIR (removed at the end in any case), or overwrites DEVICE. The runs are stored, or
    with --output written to a file (with --store, both). Ctrl-C ends the sweep; completed runs are kept.

    --light moves at most --gib in at most --seconds, begins a run only while the target is idle, leaves out runs that
    others disturbed, and says what it did not determine. Its calibration is stored where its runs give one.
    """
    from iolens.api.calibration import ready_sweep, store_runs, write_runs
    from iolens.benchmarks.light_probe import LightLimits, light_plan
    from iolens.benchmarks.sweep import REPEATS, TRANSFER_SIZES, Plan
    from iolens.config import load_config
    from iolens.units import GIB

    known = load_config(config)
    check_light(light, place, targets)
    sizes = None if sizes is None else tuple(sorted(sizes))
    limits = LightLimits(seconds, round(gib * GIB))
    plan = Plan(
        place, file_bytes, sizes or TRANSFER_SIZES, repeats or REPEATS, runtime, queue_depth, jobs,
        direct=not buffered, realtime=realtime, guard=asymptote, filesystem=filesystem,
    )  # fmt: skip
    if light:
        look_into_store(known.store_url(store), filesystem, targets)
        plan = light_plan(plan, limits, sizes, repeats)
    sweep = ready_sweep(
        plan,
        destroy_data=destroy_data,
        with_ior=with_ior,
        launcher=launcher,
        lustre_root=lustre_root,
        targets=None if light and lustre_root is None else targets,
        say=say,
    )
    outcome = probed(sweep, limits) if light else None
    runs = _runs(sweep) if outcome is None else outcome.runs
    if runs.rows and output is not None:
        write_runs(sweep, runs, output)
        click.echo(f"{output}: {runs.count} runs; fit them with: iolens calibrate fit {output}")
    if runs.rows and (output is None or store is not None):
        url = store_runs(sweep, runs, known.store_url(store))
        click.echo(f"{url}: {runs.count} runs; fit them with: iolens calibrate fit {plan.sweep}")
        if outcome is not None:
            stored_light(url, outcome, filesystem, target_class)
    if outcome is not None:
        say_light(outcome)
    if runs.failure is not None:
        raise runs.failure
    return 0 if runs.is_whole else INTERRUPTED


def _runs(sweep: ReadySweep) -> SweepRuns:
    from iolens.api.calibration import sweep_runs

    say(f"{sweep.points} runs of {sweep.plan.runtime_s:g} s on {sweep.plan.file}")
    with progress(sweep.points + 1, "calibrating") as step:
        runs = sweep_runs(sweep, step if sys.stderr.isatty() else say)
    if not runs.is_whole and runs.failure is None:
        say(f"interrupted after {runs.count} of {sweep.points} runs; the file is removed")
    return runs


# What `iolens calibrate run --light` refuses, says and stores beyond what a sweep does --------------------------------

SET_ITSELF: Final = {  # options that a light probe sets itself, or cannot keep within its limits
    "file_bytes": "--size", "runtime": "--runtime", "jobs": "--jobs", "with_ior": "--ior",
    "asymptote": "--asymptote", "destroy_data": "--destroy-data",
}  # fmt: skip
LIMITS: Final = {"seconds": "--seconds", "gib": "--gib", "target_class": "--target-class"}
COEFFICIENTS: Final = (
    ("latency_s", "latency_low_s", "latency_high_s", "s"),
    ("s_per_byte", "s_per_byte_low", "s_per_byte_high", "s/byte"),
)


def check_light(light: bool, place: Path, targets: tuple[str, ...] | None) -> None:
    """Refuse what a light probe cannot keep within its limits, and its limits without it."""
    from click.core import ParameterSource

    from iolens.api.calibration import one_target
    from iolens.errors import OptionError

    source = click.get_current_context().get_parameter_source
    names = SET_ITSELF if light else LIMITS
    given = [option for name, option in names.items() if source(name) is ParameterSource.COMMANDLINE]
    if given and not light:
        raise OptionError(f"{', '.join(given)}: only with --light")
    if not light:
        return
    one_target(targets)
    if given:
        raise OptionError(f"--light sets its own limits, with --seconds and --gib: leave out {', '.join(given)}")
    if place.is_block_device():
        raise OptionError("--light writes one file: name a directory, on Lustre one striped over one idle OST")


def look_into_store(url: str, filesystem: str | None, targets: tuple[str, ...] | None) -> None:
    """What the newest samples say of the target, where both are named and the store has them."""
    from iolens.api.calibration import check_target_is_idle
    from iolens.store.store import Store

    opened = Store(url)
    if filesystem is not None and targets and filesystem in opened.targets_by_filesystem():
        say(check_target_is_idle(opened, filesystem, targets[0]))


def probed(sweep: ReadySweep, limits: LightLimits) -> LightOutcome:
    """Run the probe, with a bar on a terminal."""
    from iolens.api.calibration import run_light
    from iolens.units import format_bytes

    say(f"at most {limits.seconds:g} s and {format_bytes(limits.bytes)} on {sweep.plan.file}")
    if sweep.counters is None:
        say("warning: nothing tells whether others use the target: the probe cannot give way to them")
    with progress(sweep.points + 1, "probing") as step:
        outcome = run_light(sweep, limits, step if sys.stderr.isatty() else say)
    if not outcome.runs.is_whole and outcome.runs.failure is None:
        say(f"interrupted after {outcome.runs.count} of {sweep.points} runs; the file is removed")
    return outcome


def stored_light(url: str, outcome: LightOutcome, filesystem: str | None, target_class: str | None) -> None:
    """Store the calibration where the runs give one."""
    from iolens.api.calibration import store_light
    from iolens.store.store import Store

    evidence = store_light(Store(url), outcome, filesystem, target_class)
    if evidence is not None and outcome.record is not None:
        click.echo(f"{url}: stored {outcome.record['name']} ({evidence})")


def say_light(outcome: LightOutcome) -> None:
    """What the probe used, what it gave, and what it did not determine."""
    from iolens.units import format_bytes

    disturbed = f", {outcome.disturbed_runs} disturbed runs left out" if outcome.disturbed_runs else ""
    early = "; no time was left for the other runs" if outcome.ended_early else ""
    used = f"{outcome.used_s:.0f} s and {format_bytes(outcome.moved_bytes)}"
    click.echo(f"used {used}, waited {outcome.waited_s:.0f} s for others{disturbed}{early}")
    if outcome.record is not None:
        for direction in ("write", "read"):
            click.echo(f"  {direction:5} {_coefficients(outcome.record, direction)}")
    click.echo("not determined:")
    for what in outcome.not_determined:
        click.echo(f"  {what}")


def _coefficients(record: dict[str, float], direction: str) -> str:
    """Both coefficients with their ends."""
    texts = []
    for names in COEFFICIENTS:
        value, low, high = (record[f"{direction}_{name}"] for name in names[:3])
        texts.append(f"{value:.3g} {names[3]} ({low:.3g} to {high:.3g})")
    return " + ".join(texts)
