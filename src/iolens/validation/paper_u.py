"""Study U: a file system utilization metric, calibrated on a test system and applied to Hopper (NERSC, 2013).

Its telemetry was never published. What needs none is recomputed: the calibration of Table I through the regression of
Eq. 4, what follows from its coefficients, and the arithmetic of read-ahead in Fig. 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from iolens.analyses.calibration.fit import CalibrationFit, calibration_fit
from iolens.models.transaction_time import GRACE_2012, achievable_bytes_per_s, fsu_bytes_pct, fsu_pct
from iolens.units import KIB, MIB
from iolens.validation.checks import Explained, PublishedCheck, Study, out_of_reach, printed, reference, within
from iolens.validation.evidence import AnsweredNumber, PublicData, remembered

SIZES: Final = tuple(4 * KIB << power for power in range(11))  # Eq. 3: 4 KiB … 4 MiB
LARGEST_AT_DISK: Final = MIB  # the server cuts larger writes into pieces of this size
ASKED_BYTES: Final = 8 * 1000**3  # Fig. 6: what the read test asked for
READ_BYTES: Final = 9_500_000_000  # Fig. 6: what the disk read for it
ONE_SECOND: Final = {("write", 4 * KIB): 100, ("read", MIB): 50}

HOPPER: Final = "the telemetry of Hopper's file systems was not published"
INVENTORY: Final = "an inventory, not a result"
GRACE: Final = "the runs on the test system Grace were not published"
LOOP: Final = "Eq. 4 on eleven runs that take as long as Eq. 5 says: there and back"


def _runs() -> Iterator[dict[str, Any]]:
    """Table I's sweep: every transfer size of Eq. 3, in both directions, as long as Eq. 5 says it takes."""
    for size in SIZES:
        at_disk = min(size, LARGEST_AT_DISK)
        for direction, disk_bytes in (("write", ASKED_BYTES), ("read", READ_BYTES)):
            ios = disk_bytes / at_disk
            yield {
                "tool": "ior",
                "direction": direction,
                "access": "random",
                "transfer_bytes": size,
                "bytes": ASKED_BYTES,
                "operations": ASKED_BYTES / size,
                "device_ops": ios,
                "device_bytes": disk_bytes,
                "duration_s": ios * GRACE_2012.of(direction).seconds(at_disk),
            }


@remembered
def _fit(evidence: PublicData) -> CalibrationFit:
    return calibration_fit(_runs())


def _of_direction(direction: str, name: str) -> AnsweredNumber:
    """A coefficient of Table I."""
    return AnsweredNumber(lambda evidence: _fit(evidence).observed.of(direction), name)


def _one_second(evidence: PublicData) -> float:
    return fsu_pct(ONE_SECOND, 1.0, GRACE_2012)


def _one_second_counted(evidence: PublicData) -> float:
    """The same from operations and bytes alone."""
    (_, written), (_, read) = ONE_SECOND
    writes, reads = ONE_SECOND.values()
    return fsu_bytes_pct(reads, reads * read, writes, writes * written, 1.0, GRACE_2012)


def _saturated(evidence: PublicData) -> float:
    """FSU of the 4 KiB write test, which keeps the disk busy all the time."""
    run = next(run for run in _runs() if run["direction"] == "write")
    return fsu_pct({("write", 4 * KIB): round(run["device_ops"])}, run["duration_s"], GRACE_2012)


def _small_over_large(evidence: PublicData) -> float:
    """Bandwidth of 8 KiB writes over that of 4 KiB writes."""
    rates = [achievable_bytes_per_s({("write", size): 1}, GRACE_2012) for size in (4 * KIB, 8 * KIB)]
    return rates[1] / rates[0]


# fmt: off
CHECKS: Final = (
    *(check for direction, latency, per_byte, rate in (
        ("write", "1.04e-3", "1.73e-9", "551"),
        ("read", "8.02e-4", "1.23e-9", "775"),
    ) for check in (
        PublishedCheck("Table I", f"{direction} latency", printed(latency, "s"), LOOP,
            _of_direction(direction, "latency_s")),
        PublishedCheck("Table I", f"{direction} time per byte", printed(per_byte, "s/B"), LOOP,
            _of_direction(direction, "s_per_byte")),
        PublishedCheck("Table I", f"{direction} rate", printed(rate, "MiB/s"),
            "Eq. 2, 1 ÷ time per byte; the table says MB/sec for 2²⁰ bytes",
            _of_direction(direction, "rate_mib_per_s")),
    )),
    PublishedCheck("Eq. 7", "FSU of a second with 100 writes of 4 KiB and 50 reads of 1 MiB", reference("20.93", "%"),
        "Eq. 7 with Table I; not in the study, calculated by hand", _one_second),
    PublishedCheck("Eq. 7", "the same from operations and bytes", reference("20.93", "%"),
        "Eq. 7 is linear: counts of operations and bytes are enough; calculated by hand", _one_second_counted),
    PublishedCheck("section IV", "FSU of a test that runs as fast as the disk allows",
        within("around 100", 100.0, "%", (99.5, 100.5), "the model is exact for runs made by the model"),
        "Eq. 7 on the 4 KiB write test of Table I's sweep (measured, it was about 70: Fig. 8)", _saturated),
    PublishedCheck("section II", "write bandwidth of 8 KiB over 4 KiB transfers",
        within("proportional", 2.0, "times", (1.95, 2.05), "a straight line read to a fortieth"),
        "Eqs. 2 and 6 with Table I", _small_over_large),
    PublishedCheck("Fig. 6", "disk reads ÷ bytes asked for, 4 kB reads",
        within("9.5 for 8 GB", 1.1875, "times", (1.18125, 1.19375), "9.5 GB is printed to half a unit of 0.1 GB"),
        "the observed sizes of the sweep's reads", AnsweredNumber(_fit, "read_amplification")),
    PublishedCheck("Fig. 6", "share of the bytes read that was discarded",
        within("almost 20", 20.0, "%", (18.0, 20.0), "almost: within a tenth below"),
        "1 − 1 ÷ amplification", AnsweredNumber(_fit, "discarded_pct"),
        otherwise=Explained("15.8", "1.5 of 9.5 GB is 15.8 %; the study sets it against the 8 GB asked for")),
    out_of_reach("abstract", "load above what bandwidth alone shows", "about four", "times", HOPPER),
    out_of_reach("section I", "nodes and cores of Hopper", "6384; 153216", "", INVENTORY),
    out_of_reach("section I.A", "OSTs, servers, capacity of /scratch", "156; 26; 1.1 PB", "", INVENTORY),
    out_of_reach("section I.A", "peak bandwidth of /scratch", "35", "GB/s", HOPPER),
    out_of_reach("Fig. 2", "write bandwidth, and reads from cache and from disk", "400; 4000; 450", "MB/s", GRACE),
    out_of_reach("Fig. 3", "observations of one day", "17280", "", HOPPER),
    out_of_reach("Figs. 4, 5, 7", "bandwidth by transfer size, measured and predicted", "curves", "MB/s", GRACE),
    out_of_reach("Fig. 6", "4 kB reads that reached the disk; read test over write test", "5000; 30", "", GRACE),
    out_of_reach("Fig. 8", "FSU during a saturating test", "70", "%", GRACE),
    out_of_reach("section V", "rate of large writes to one OST of Hopper", "220", "MB/s", HOPPER),
    out_of_reach("section V", "bytes read and written a day, mean and median", "140; 70; 50", "TB/day", HOPPER),
    out_of_reach("Figs. 9, 10", "a typical day and a busy one", "curves", "", HOPPER),
    out_of_reach("Fig. 11", "observations below 2 %, between, and above 30 %", "25; 65; 10", "%", HOPPER),
    out_of_reach("Fig. 12", "I/Os of 1 MB against all smaller ones", "60/40", "%", HOPPER),
    out_of_reach("Table II", "idle, moderate and busy time on /scratch, and their I/Os", "26; 65; 9", "%", HOPPER),
    out_of_reach("Table III", "the same on /scratch2", "62; 34; 4", "%", HOPPER),
)
# fmt: on

STUDY: Final = Study(
    "U",
    "A File System Utilization Metric for I/O Characterization (Uselton, Wright; Cray User Group 2013)",
    "https://cug.org/proceedings/cug2013_proceedings/by_auth.html",
    CHECKS,
)
