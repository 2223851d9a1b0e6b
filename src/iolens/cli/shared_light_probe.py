"""What `iolens calibrate run --light` refuses, says and stores beyond what a sweep does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.terminal_output import progress
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.api.calibration import LightOutcome, ReadySweep
    from iolens.benchmarks.light_probe import LightLimits

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
