"""What the public data of study P say, asked through the sources, analyses and plans that users run.

The data are Cori's scratch file system and burst buffer at NERSC. Every answer here is a number of the product; units
are those the study prints.
"""

from __future__ import annotations

import math
from datetime import datetime
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

import numpy as np

from iolens.analyses.capacity.readings import gather
from iolens.analyses.contents.analysis import contents
from iolens.analyses.contents.distribution import Widths
from iolens.analyses.contents.scans import InodeSizes, inode_sizes
from iolens.analyses.demand import SystemCapacity, daily_writes, system_capacity
from iolens.analyses.drives.analysis import Drives, drives
from iolens.analyses.growth import Growth, growth
from iolens.errors import InputError
from iolens.models.dom import Bin, Method, SizeBins, read_modify_write_factor, stripe_bytes_written
from iolens.models.growth import Method as GrowthMethod
from iolens.plans.capacity import CapacityPlan, plan_capacity
from iolens.plans.cases import EnduranceCase, FileSystemWrites, Input, value
from iolens.plans.endurance import TRINITY, CaseInputs, file_system_writes, over_provisioning, plan_endurance
from iolens.plans.metadata import MetadataPlan, StripeLayout, plan_metadata
from iolens.sources import ReadOptions
from iolens.units import GIB, KIB, MIB
from iolens.validation.evidence import AnsweredNumber, PublicData, PublicFile, known, remembered

DESIGN: Final = "https://github.com/NERSC/lustre-design-analysis, datasets"
FULLNESS: Final = PublicFile("nersc-fs-design/cscratch_fullness-2017-02-14_2018-04-26.csv", DESIGN)
IO_RATES: Final = PublicFile("nersc-fs-design/cscratch_daily_iorates.csv", DESIGN)
WIDTHS: Final = PublicFile("nersc-fs-design/cscratch_20190115_dirdist_hist.csv", DESIGN)
SIZES: Final = PublicFile(
    "fsstats/cscratch_20190115_sizebytype_hist.csv", "https://github.com/glennklockwood/nersc-archive-size-dist"
)
DRIVES: Final = PublicFile(
    "isdct/cori-bb-daily/Intel_DCT_20190401.csv.gz",
    "https://github.com/glennklockwood/nersc-drive-health, cori-bb-smart",
)

SCRATCH, DIRECTORIES, BURST_BUFFER = "cscratch", "cscratch-directories", "cori-bb"
PACIFIC: Final = ZoneInfo("America/Los_Angeles")
TWO_YEARS: Final = (datetime(2017, 4, 3, tzinfo=PACIFIC), datetime(2019, 4, 3, tzinfo=PACIFIC))  # to the last day known
TB, PB, TIB = 1e12, 1e15, 2.0**40
HOURS_PER_YEAR: Final = 24 * 365.25
NEW_BYTES: Final = 30e15  # the capacity that Fig. 6 is drawn for
HIGH_WAF: Final = 5.0
LOW, HIGH, PLAIN = StripeLayout(10, 2), StripeLayout(8, 2), StripeLayout(8, 0)
RAID_BLOCK: Final = 128 * KIB  # any size will do: the study counts in blocks
ANY: Final = 1 << 62  # a threshold above every file
FINE: Final = tuple(round(MIB * 2 ** (step / 4)) for step in range(1, 17))  # up to 16 MiB


def given(name: str, number: float) -> Input:
    """A number of the study itself."""
    return value(name, number, "the study")


# Capacity: section III


def _load_scratch(evidence: PublicData, file: PublicFile) -> None:
    evidence.load("tokio-csv", file, ReadOptions(filesystem=SCRATCH, timezone=PACIFIC.key))


@remembered
def growth_by(evidence: PublicData, method: GrowthMethod) -> Growth:
    """Daily growth over the days there are."""
    _load_scratch(evidence, FULLNESS)
    return growth(evidence.select(SCRATCH), method=method)


def of_growth(statistic: str, method: GrowthMethod) -> AnsweredNumber:
    """`mean` or `median`, TB/day."""
    return AnsweredNumber(partial(growth_by, method=method), f"{statistic}_bytes_per_day", TB, FULLNESS)


def growth_skew(evidence: PublicData) -> float:
    """Mean over median."""
    return of_growth("mean", "paper")(evidence) / of_growth("median", "paper")(evidence)


def growth_days(evidence: PublicData) -> float:
    """Days from one reading to the next."""
    result = growth_by(evidence, "paper")
    return float(result.days_with_growth + result.days_excluded)


@remembered
def scratch_capacity(evidence: PublicData) -> SystemCapacity:
    """Of the reference file system."""
    _load_scratch(evidence, FULLNESS)
    capacity = system_capacity(evidence.select(SCRATCH))
    if capacity is None:
        raise InputError(FULLNESS.path, "no reading tells the capacity")
    return capacity


SCRATCH_PETABYTES: Final = AnsweredNumber(scratch_capacity, "bytes", PB)


def scratch_targets(evidence: PublicData) -> float:
    """OSTs of a complete reading."""
    _load_scratch(evidence, FULLNESS)
    return float(gather(evidence.select(SCRATCH), "bytes").usage("bytes").readings.targets.max(initial=0))


def _capacity_plan(ssi: float, grown: Growth | None) -> CapacityPlan:
    inputs = {
        "ssi": [given("ssi", ssi)],
        "purge_days": [given("purge_days", 28)],
        "purge_fraction": [given("purge_fraction", 0.5)],
    }
    if grown is None:
        inputs["daily_growth_bytes"] = [given("daily_growth_bytes", 133 * TB)]
    return plan_capacity(inputs, growth=grown)


def planned_capacity(evidence: PublicData, ssi: float) -> float:
    """PB by Eq. 1, with the growth that the study prints."""
    return _capacity_plan(ssi, None).cases[0].capacity_bytes / PB


def planned_capacity_from_days(evidence: PublicData, ssi: float) -> float:
    """PB by Eq. 1, with the growth of the shipped days."""
    return _capacity_plan(ssi, growth_by(evidence, "paper")).cases[0].capacity_bytes / PB


# Endurance: section IV


@remembered
def writes_per_day(evidence: PublicData) -> FileSystemWrites:
    """FSWPD over two years."""
    _load_scratch(evidence, IO_RATES)
    return file_system_writes(daily_writes(evidence.select(SCRATCH, *TWO_YEARS)), scratch_capacity(evidence))


MEAN_FSWPD: Final = AnsweredNumber(writes_per_day, "mean", file=IO_RATES)
DAYS_WITH_WRITES: Final = AnsweredNumber(writes_per_day, "days")


def written_per_day(evidence: PublicData) -> float:
    """PB/day."""
    return MEAN_FSWPD(evidence) * SCRATCH_PETABYTES(evidence)


@remembered
def burst_buffer(evidence: PublicData) -> Drives:
    """The drives of the burst buffer, server by server; what stands out is a WAF above 5, as in the study."""
    evidence.load("isdct", DRIVES, ReadOptions(filesystem=BURST_BUFFER))
    return drives(evidence.select(BURST_BUFFER), waf_limit=HIGH_WAF, group_by="host")


def of_drives(path: str, unit: float = 1.0) -> AnsweredNumber:
    """A number of the burst buffer's drives, such as `waf.p95`."""
    return AnsweredNumber(burst_buffer, path, unit, DRIVES)


def drive_hosts(evidence: PublicData) -> float:
    """Servers they are in."""
    return float(len(burst_buffer(evidence).groups))


def idle_among_amplified(evidence: PublicData) -> float:
    """% of the drives with a WAF above 5 that low use explains."""
    outliers = burst_buffer(evidence).outliers
    return 100.0 * outliers.low_use / known(outliers.drives or None, DRIVES)


def use_of_amplified(evidence: PublicData) -> float:
    """Lifetime writes of the median drive with a WAF above 5, in % of those of the median of the others."""
    outliers = burst_buffer(evidence).outliers
    return 100.0 * known(outliers.median_drive_writes, DRIVES) / known(outliers.others_median_drive_writes, DRIVES)


def amplified_servers(evidence: PublicData) -> float:
    """Of all drives in servers that have one with a WAF above 5: the % that have such a WAF."""
    groups = [group for group in burst_buffer(evidence).groups if group.outliers]
    outliers, everyone = sum(group.outliers for group in groups), sum(group.drives for group in groups)
    return 100.0 * outliers / known(everyone or None, DRIVES)


def endurance_case(ssi: Input, fswpd: Input, layout: StripeLayout, waf: Input, *drive_bytes: int) -> EnduranceCase:
    """Eq. 2, and Eq. 4 for drives of those sizes against one of the first size."""
    drive = given("reference_drive_bytes", drive_bytes[0]) if drive_bytes else None
    cases = [CaseInputs(ssi, fswpd, layout, waf)]
    return plan_endurance(cases, reference_drive=drive, drive_sizes=drive_bytes).cases[0]


def measured_dwpd(evidence: PublicData, ssi: float, layout: StripeLayout, statistic: str) -> float:
    """Eq. 2 with FSWPD and WAF as the data give them."""
    waf = given("waf", of_drives(f"waf.{statistic}")(evidence))
    inputs = given("ssi", ssi), given("fswpd", MEAN_FSWPD(evidence)), layout, waf
    return endurance_case(*inputs).dwpd


def reserved_pct(evidence: PublicData) -> float:
    """Of the capacity, for 10 instead of 3 DWPD."""
    return max(drive.reserved_pct for drive in over_provisioning(TRINITY))


def gained_pct(evidence: PublicData) -> float:
    """Of the capacity, for 3 instead of 10 DWPD."""
    return max(drive.capacity_gain_pct for drive in over_provisioning(TRINITY))


def one_byte_blocks(evidence: PublicData, writes: int, layout: StripeLayout) -> float:
    """RAID blocks written for so many writes of one byte."""
    return writes * stripe_bytes_written(1, layout.data, layout.parity, RAID_BLOCK) / RAID_BLOCK


def full_stripes(evidence: PublicData) -> float:
    """Bytes written per byte of full-stripe writes."""
    return known(read_modify_write_factor({HIGH.data * RAID_BLOCK: 1}, HIGH.data, HIGH.parity, RAID_BLOCK), None)


def needed_dwpd(evidence: PublicData, ssi: float, layout: StripeLayout, waf: float) -> float:
    """Eq. 2 with FSWPD and WAF as printed."""
    return _printed_case(ssi, layout, waf).dwpd


def class_dwpd(evidence: PublicData) -> float:
    """The lowest class of drives at or above the largest need."""
    return known(_printed_case(4, HIGH, 3.17).class_dwpd, None)


def on_twice_the_drive(evidence: PublicData) -> float:
    """DWPD on a drive of twice the size over that on the old one."""
    small, large = _printed_case(4, HIGH, 3.17, 1_600_000_000_000, 3_200_000_000_000).larger_drives
    return large.dwpd / small.dwpd


def _printed_case(ssi: float, layout: StripeLayout, waf: float, *drive_bytes: int) -> EnduranceCase:
    return endurance_case(given("ssi", ssi), given("fswpd", 0.024), layout, given("waf", waf), *drive_bytes)


def overhead(evidence: PublicData, layout: StripeLayout, over: StripeLayout = PLAIN) -> float:
    """Raw bytes per byte of data, over those of another layout."""
    return layout.overhead / over.overhead


# Metadata: section V


@remembered
def reference_inodes(evidence: PublicData) -> InodeSizes:
    """Inodes of the reference file system by type and size."""
    evidence.load("size-histogram", SIZES, ReadOptions(filesystem=SCRATCH))
    sizes = inode_sizes(evidence.select(SCRATCH))
    if sizes is None:
        raise InputError(SIZES.path, "no sizes of inodes")
    return sizes


@remembered
def directory_widths(evidence: PublicData) -> Widths:
    """Directories by number of entries; a scan of its own, because that file tells nothing else."""
    evidence.load("size-histogram", WIDTHS, ReadOptions(filesystem=DIRECTORIES))
    widths = contents(evidence.select(DIRECTORIES)).widths
    if widths is None:
        raise InputError(WIDTHS.path, "no widths of directories")
    return widths


def widest_directory(evidence: PublicData) -> float:
    """Millions of entries that the widest directory surely exceeds: the last bin below its own that holds any."""
    widths = directory_widths(evidence)
    below = [
        point.entries
        for point in widths.width_cdf
        if point.entries is not None and point.directories < widths.directories
    ]
    return max(below, default=0) / 1e6


def very_wide_directories(evidence: PublicData) -> float:
    """Directories of more than 8,388,608 entries."""
    widths = directory_widths(evidence)
    up_to = max((point.directories for point in widths.width_cdf if (point.entries or ANY) <= 1 << 23), default=0)
    return float(widths.directories - up_to)


@remembered
def metadata_plan(evidence: PublicData, method: Method) -> MetadataPlan:
    """Eqs. 5–11 for 30 PB, for every threshold that is asked for."""
    wanted = [64 * KIB, MIB, ANY, *FINE]
    return plan_metadata(reference_inodes(evidence), given("capacity_bytes", NEW_BYTES), wanted, methods=(method,))


def at_threshold(evidence: PublicData, method: Method, dom_bytes: int, part: str) -> float:
    """TiB; `part` such as `dom_avg` or `inode_max`."""
    plan = metadata_plan(evidence, method)
    threshold = next(threshold for threshold in plan.thresholds if threshold.dom_bytes == dom_bytes)
    return known(getattr(threshold, f"{part}_bytes"), SIZES) / TIB


def all_on_mdts(evidence: PublicData) -> float:
    """PB of data on the MDTs when no file is above the threshold."""
    return at_threshold(evidence, "paper", ANY, "dom_avg") * TIB / PB


def inodes_by_threshold(evidence: PublicData) -> float:
    """C_inode at one threshold over that at another."""
    return at_threshold(evidence, "paper", MIB, "inode_avg") / at_threshold(evidence, "paper", 64 * KIB, "inode_avg")


def small_files(part: str) -> AnsweredNumber:
    """% of `files` or `bytes` up to the bin that holds the 95th percentile of files."""
    return AnsweredNumber(partial(metadata_plan, method="paper"), f"small_files.{part}_pct", file=SIZES)


def threshold_gain(evidence: PublicData) -> float:
    """How many times larger S0 may be with 1 PiB than with 512 TiB."""
    plan = metadata_plan(evidence, "paper")
    points = sorted(
        (threshold.total_avg_bytes or 0, threshold.dom_bytes)
        for threshold in plan.thresholds
        if threshold.dom_bytes in FINE
    )
    totals, sizes = ([float(point[place]) for point in points] for place in (0, 1))
    small, large = np.interp([512 * TIB, 1024 * TIB], totals, sizes)
    return float(large / small)


def threshold_gain_by_powers(evidence: PublicData) -> float:
    """The same between the powers of two whose need is nearest."""
    curve = metadata_plan(evidence, "paper").curve or []

    def nearest(capacity: float) -> int:
        return min(curve, key=lambda threshold: abs(math.log((threshold.total_avg_bytes or 1) / capacity))).dom_bytes

    return nearest(1024 * TIB) / nearest(512 * TIB)


def device_inodes(evidence: PublicData) -> float:
    """Block and character devices."""
    inodes = metadata_plan(evidence, "paper").inodes
    return float(sum(line.count for line in inodes if line.inode_type in ("blk", "chr")))


def largest_directory(evidence: PublicData) -> float:
    """GiB: the upper end of the last bin that holds a directory."""
    inode_type = next((inode for inode in metadata_plan(evidence, "paper").inodes if inode.inode_type == "dir"), None)
    return known(None if inode_type is None else inode_type.largest_bin_bytes, SIZES) / GIB


def small_directories(evidence: PublicData) -> float:
    """% of directories, links and other inodes that need no more than 4 KiB."""
    others = list(reference_inodes(evidence).others.values())
    fitting = sum(bins.at_most(4 * KIB) * bins.total for bins in others)
    return 100.0 * fitting / sum(bins.total for bins in others)


def bin_mass(evidence: PublicData, end: str) -> float:
    """KiB of 512 files in the bin (1024, 2048]: `low` or `high`."""
    mass: float = getattr(SizeBins.of([Bin(1024, 2048, 512)]).mass, end)
    return mass / KIB
