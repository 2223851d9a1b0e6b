"""Study S: the workload of Spider, a centre-wide file system of 48 RAID controllers (Oak Ridge, 2010 and 2012).

Its telemetry was never published. What can be recomputed goes there and back: telemetry drawn from the shipped model of
Spider, which has the printed parameters, is characterised as a store of measurements would be.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Final

import numpy as np

from iolens.analyses.workload.analysis import Workload, workload
from iolens.models.heavy_tail import PaperFit
from iolens.models.workload_model import Marginal
from iolens.schema import DIRECTIONS
from iolens.simulator.synthetic import load_model
from iolens.simulator.synthetic_telemetry import order_of, synthesize_telemetry
from iolens.units import KIB
from iolens.validation.checks import (
    ROUNDED,
    Explained,
    Published,
    PublishedCheck,
    Study,
    at_least,
    out_of_reach,
    within,
)
from iolens.validation.evidence import AnsweredNumber, PublicData, remembered

MODEL: Final = "spider"
START: Final = datetime(2010, 4, 1, tzinfo=UTC)
TARGETS, DAYS = 8, 2.0
LOOP: Final = "telemetry drawn from the model with the printed parameters, characterised again: there and back"
QUANTISED: Final = "values are multiples of 2 s, and fitted as such (`quantised`)"
CHANCE: Final = "5 %: what the chance of a few days may change"
SPIDER: Final = "the telemetry of Spider was not published"
NOT_PARETO: Final = "a Pareto distribution with the printed alpha that begins at the printed mode reaches 90 % there"
FASTER: Final = f"{NOT_PARETO}: the study's curve rises faster than its model"
ONE_SAMPLE: Final = f"{NOT_PARETO}; x_m is one sample of 2 s, which is not printed"
HOW: Final = {"idle": f"{LOOP}; {QUANTISED}"}  # where it is not `LOOP`


@remembered
def _characterised(evidence: PublicData) -> Workload:
    model = load_model(MODEL)
    synthesize_telemetry(order_of(evidence.store.url, model, start=START, days=DAYS, targets=TARGETS))
    return workload(evidence.select(model.filesystem), sections=("bandwidth", "sizes", "arrivals", "idle"))


def _fit(evidence: PublicData, what: str) -> PaperFit:
    """By least squares; idle times are multiples of 2 s, and have a fit that takes them as such."""
    tail = _characterised(evidence).models[what]
    fit = tail.quantised if what.endswith("idle") else tail.paper
    assert fit is not None
    return fit


def _of_fit(what: str, name: str) -> AnsweredNumber:
    return AnsweredNumber(partial(_fit, what=what), name)


def _mode_ms(evidence: PublicData, what: str) -> float:
    return 1000.0 * _fit(evidence, what).xm


def _quantile(evidence: PublicData, what: str, share: float, scale: float = 1.0) -> float:
    """Of the Pareto distribution that was fitted."""
    fit = _fit(evidence, what)
    return scale * float(Marginal.pareto(fit.alpha, fit.xm).quantile(np.array([share]))[0])


def _reads(evidence: PublicData) -> float:
    share = _characterised(evidence).aggregate
    assert share is not None
    assert share.write_requests_pct is not None
    return 100.0 - share.write_requests_pct


def _below_16_kib(evidence: PublicData, direction: str) -> float:
    sizes = _characterised(evidence).sizes
    return 100.0 * sum(size.pdf for size in sizes if size.direction == direction and size.size_bytes <= 16 * KIB)


def _at_peaks(evidence: PublicData) -> float:
    """Requests of up to 16 KiB, and of the last two bins up to 512 KiB and up to 1 MiB."""
    sizes = _characterised(evidence).sizes
    peaks = {16 * KIB, 496 * KIB, 512 * KIB, 1008 * KIB, 1024 * KIB}
    return (
        100.0 * sum(size.requests for size in sizes if size.size_bytes in peaks) / sum(size.requests for size in sizes)
    )


def _about(value: float, half: float, unit: str, why: str) -> Published:
    return within(f"{value:g}", value, unit, (value - half, value + half), why, "printed")


def _near(text: str, unit: str = "") -> Published:
    value = float(text)
    return within(text, value, unit, (0.95 * value, 1.05 * value), CHANCE, "printed")


DIRECTION_AND_TAIL: Final = (
    ("section 4.1", "bandwidth", "bandwidth", ("1.24", 0.98), ("2.6", 0.99)),
    ("section 6.3", "interarrival", "inter-arrival time", ("1.17", 0.98), ("1.72", 0.99)),
    ("section 6.3", "idle", "idle time", ("1.36", 0.98), ("1.43", 0.98)),
)

# fmt: off
CHECKS: Final = (
    *(check for where, what, name, *fits in DIRECTION_AND_TAIL
        for direction, (alpha, r2) in zip(DIRECTIONS, fits, strict=True) for check in (
        PublishedCheck(where, f"alpha of the {direction} {name}", _near(alpha), HOW.get(what, LOOP),
            _of_fit(f"{direction}_{what}", "alpha")),
        PublishedCheck(where, f"R² of the {direction} {name}",
            at_least(f"{r2:g}", r2, "", "a sample of the model fits the model at least as well"),
            HOW.get(what, LOOP), _of_fit(f"{direction}_{what}", "r2")),
    )),
    PublishedCheck("section 5", "reads among the requests",
        within("42.2", 42.2, "%", (41.7, 42.7), "half a point: what chance may change", "printed"), LOOP, _reads),
    PublishedCheck("Fig. 8", "reads below 16 KB", _about(20.0, 1.0, "%", "about: within a point"), LOOP,
        partial(_below_16_kib, direction="read")),
    PublishedCheck("Fig. 8", "writes below 16 KB", _about(50.0, 1.0, "%", "about: within a point"), LOOP,
        partial(_below_16_kib, direction="write")),
    PublishedCheck("section 6.1", "requests below 16 KB, at 512 KB and at 1 MB",
        at_least("more than 95", 95.0, "%", "as printed"), LOOP, _at_peaks,
        otherwise=Explained("94.3", "the model's shares are read off Fig. 8, which leaves 6 % between the peaks")),
    PublishedCheck("Fig. 10", "mode of the read inter-arrival time", _near("2", "ms"), LOOP,
        partial(_mode_ms, what="read_interarrival")),
    PublishedCheck("Fig. 10", "mode of the write inter-arrival time", _near("4", "ms"), LOOP,
        partial(_mode_ms, what="write_interarrival")),
    # What the printed parameters imply, against what the study says of its measurements.
    PublishedCheck("Fig. 10", "90 % of the read inter-arrival times are below",
        within("13 to 14", 13.5, "ms", (13.0, 14.0), "as printed", "printed"), LOOP,
        partial(_quantile, what="read_interarrival", share=0.9, scale=1000.0),
        otherwise=Explained("14.3", FASTER)),
    PublishedCheck("Fig. 10", "90 % of the write inter-arrival times are below",
        within("10 to 11", 10.5, "ms", (10.0, 11.0), "as printed", "printed"), LOOP,
        partial(_quantile, what="write_interarrival", share=0.9, scale=1000.0),
        otherwise=Explained("15.3", FASTER)),
    PublishedCheck("Fig. 12", "10 % of the read idle times are above", _about(10.0, 0.5, "s", ROUNDED), LOOP,
        partial(_quantile, what="read_idle", share=0.9), otherwise=Explained("10.9", ONE_SAMPLE)),
    PublishedCheck("Fig. 12", "10 % of the write idle times are above", _about(16.0, 0.5, "s", ROUNDED), LOOP,
        partial(_quantile, what="write_idle", share=0.9), otherwise=Explained("10.0", ONE_SAMPLE)),
    out_of_reach("Fig. 1", "least, most, mean and spread of two times", "0; 2449; 373.2; 724.6", "MB/s", SPIDER),
    out_of_reach("section 2", "controllers, drives, servers", "96; 13440; 192", "", "an inventory, not a result"),
    out_of_reach("section 4", "largest read and write bandwidth of a week", "90; 65", "GB/s", SPIDER),
    out_of_reach("section 4", "95th percentile of controller 1, read and write", "115; 153", "MB/s", SPIDER),
    out_of_reach("section 4", "99th percentile of controller 1, read and write", "508; 803", "MB/s", SPIDER),
    out_of_reach("section 4", "99th over 95th percentile, read and write", "4.41; 5.24", "times", SPIDER),
    out_of_reach("section 4", "peak of controller 1, read and write", "2.7; 1.6", "GB/s", SPIDER),
    out_of_reach("Fig. 6", "all controllers against the sum of each", "bars", "GB/s", SPIDER),
    out_of_reach("section 6.1", "requests of 1 MB, reads and writes", "25; 30", "%",
        "an input of the model, not a result"),
    out_of_reach("Fig. 9", "size at which bandwidth peaks", "1", "MB", SPIDER),
    out_of_reach("Fig. 14", "capacity, and when 90 % of it is reached", "4.6 PB; less than a year", "", SPIDER),
    out_of_reach("Fig. 15", "bytes by weekday and hour", "80 to 180", "PB",
        "misprinted: more than the system could move"),
    out_of_reach("section 8", "95th percentile of least, mean and most loaded", "21; 1430; 2908", "MB/s", SPIDER),
    out_of_reach("Fig. 16", "standard deviation between controllers, 80 % and 95 %", "112; 1246", "MB/s", SPIDER),
    out_of_reach("Fig. 17", "lifetime of imbalance, 90 %, at either threshold", "58; 16", "s", SPIDER),
)
# fmt: on

STUDY: Final = Study(
    "S",
    "Understanding I/O workload characteristics of a Peta-scale storage system (Kim, Gunasekaran; 2014)",
    "https://doi.org/10.1007/s11227-014-1321-8",
    CHECKS,
)
