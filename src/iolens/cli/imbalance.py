"""How unevenly targets are loaded, for how long, and which."""

from __future__ import annotations

from datetime import datetime

import click

from iolens.cli.options import Asked, QuantityType, analysis_options
from iolens.cli.shared_time_options import TIMES
from iolens.units import parse_rate


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(word) for word in text.split(","))


def _rates(text: str) -> tuple[float, ...]:
    return tuple(parse_rate(word) for word in text.split(","))


@click.command(
    "imbalance",
    epilog="""\b
Examples:
  iolens imbalance --filesystem scratch --from 2012-01-01 --to 2012-04-01
  iolens imbalance -f scratch --threshold 112MB/s,1246MB/s --format json
  iolens imbalance -f scratch --at 2012-01-09T14:00,2012-02-02T03:30 --figure snapshot.png --figure lifetimes=l.svg
""",
)
@click.option(
    "--percentiles", type=QuantityType("list", _numbers), metavar="NUMBERS",
    help="Thresholds as percentiles of the standard deviation [80,95]",
)  # fmt: skip
@click.option(
    "--threshold", type=QuantityType("list", _rates), metavar="RATES",
    help="Thresholds as values, such as 112MB/s, instead of or in addition to percentiles",
)  # fmt: skip
@click.option(
    "--without-background", is_flag=True, help="Leave out background I/O (scrub, rebuild) if it is counted separately"
)
@click.option(
    "--at", type=TIMES, metavar="TIMES", help="Times to show in the snapshot [the worst of two days]"
)  # fmt: skip
@analysis_options
def COMMAND(
    asked: Asked,
    percentiles: tuple[float, ...] | None,
    threshold: tuple[float, ...] | None,
    without_background: bool,
    at: tuple[datetime, ...] | None,
) -> None:
    """How unevenly targets are loaded: standard deviation between them, how long imbalance lasts, who stands out.

    A tick is unbalanced if the standard deviation of the targets' bytes per second reaches a threshold. Targets that
    move nothing while their peers do, or far more or less than their peers, are named; and those that need longer for
    an I/O than their class (`iolens calibrate drift`).
    """
    from iolens.api.calibration_drift import with_slow_targets

    wanted = {} if percentiles is None and threshold is None else {"percentiles": percentiles or ()}
    result = asked.analyse(
        "imbalance",
        thresholds=threshold or (),
        with_background=not without_background,
        at=list(at or ()),
        **wanted,
    )
    with asked.opened() as opened:
        result = with_slow_targets(opened, result)
    asked.show(result)
