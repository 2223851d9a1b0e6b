"""Study P: the design of an all-flash Lustre file system from the telemetry of Cori (NERSC, 2019): every number in it.

In the order of the paper. What it prints without data behind it (inventories, assumptions, other people's numbers) is
listed too, so that nothing is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from iolens.models.dom import Method
from iolens.models.read_modify_write import read_modify_write_factor, stripe_bytes_written
from iolens.plans.endurance import TRINITY, over_provisioning
from iolens.plans.layouts import StripeLayout
from iolens.units import KIB, MIB
from iolens.validation import paper_p_evidence as found
from iolens.validation.checks import (
    Explained,
    PublishedCheck,
    Study,
    at_least,
    at_most,
    out_of_reach,
    printed,
    reference,
    within,
)
from iolens.validation.evidence import PublicData
from iolens.validation.paper_p_evidence import DRIVES, FULLNESS, IO_RATES, SIZES, WIDTHS, given

ASSUMED: Final = "an assumption of the study: an input, not a result"
INVENTORY: Final = "an inventory of the machine: no telemetry tells it"
CITED: Final = "somebody else's result, which the study cites"
PICTURE: Final = "drawn, not printed: there is no number to compare with"
WINDOW: Final = "the study's window is two years; the shipped file has 14 months, 2017-02-14 to 2018-04-25"
DUMP: Final = "the dump of 2019-04-01"
GROWTH: Final = "the study's way (change of the mean OST fullness × capacity)"
STRICT: Final = "bytes used on neighbouring days with all OSTs"
LOW, HIGH = StripeLayout(10, 2), StripeLayout(8, 2)
RAID_BLOCK: Final = 128 * KIB  # any size will do: the study counts in blocks


def _reference_system() -> Iterator[PublishedCheck]:
    bought = "what was bought, not a result; Eq. 1 gives it as the upper end"
    yield out_of_reach("abstract", "capacity of the file system to be built", "30", "PB", bought)
    yield out_of_reach("section I", "bandwidth of the largest all-disk file systems", "1", "TB/s", CITED)
    yield out_of_reach("section II.A", "compute nodes of Cori, of either kind", "9688; 2388", "nodes", INVENTORY)
    yield PublishedCheck(
        "Table I",
        "burst buffer: capacity",
        printed("1.84", "PB"),
        f"sum over the drives, {DUMP}",
        found.drives_petabytes,
        (DRIVES,),
    )
    benchmark = "a benchmark of the machine; daily sums do not show a peak"
    yield out_of_reach("Table I", "burst buffer: peak bandwidth", "1740", "GB/s", benchmark)
    yield PublishedCheck(
        "Table I",
        "burst buffer: data servers",
        printed("288"),
        f"hosts of the drives, {DUMP}",
        found.drive_hosts,
        (DRIVES,),
    )
    yield PublishedCheck(
        "Table I", "burst buffer: drives", printed("1152"), f"drives read, {DUMP}", found.drive_count, (DRIVES,)
    )
    yield PublishedCheck(
        "Table I",
        "scratch: capacity",
        printed("30.5", "PB"),
        "the last complete reading of fullness",
        found.scratch_petabytes,
        (FULLNESS,),
    )
    yield out_of_reach("Table I", "scratch: peak bandwidth", "717", "GB/s", benchmark)
    yield PublishedCheck(
        "Table I",
        "scratch: data servers",
        printed("248"),
        "OSTs of a complete reading: one to each server",
        found.scratch_targets,
        (FULLNESS,),
    )
    yield out_of_reach("Table I", "scratch: drives", "10168", "", f"{INVENTORY}; tickets name failed ones only")
    raw = "how the authors sampled; what is public are daily sums and daily readings"
    yield out_of_reach("section II.A", "intervals of LMT and of lfs df", "5 s; 5 min", "", raw)
    yield out_of_reach("section II.A", "version of Robinhood", "3.1.4", "", "no measurement")
    yield out_of_reach("section II.B", "capability of the new system over the old (SSI)", "3; 4", "times", ASSUMED)


def _capacity() -> Iterator[PublishedCheck]:
    needs = (FULLNESS,)
    yield PublishedCheck(
        "section III",
        "readings of fullness behind the growth",
        within("two years", 730.0, "days", (729.5, 731.5), "365 days a year, a leap day more or less"),
        "days from reading to reading",
        found.growth_days,
        needs,
        Explained("430", WINDOW),
    )
    yield PublishedCheck(
        "Fig. 1",
        "mean daily growth",
        printed("133", "TB/day"),
        GROWTH,
        partial(found.mean_growth, method="paper"),
        needs,
        Explained("153.8", WINDOW),
    )
    yield PublishedCheck(
        "Fig. 1",
        "median daily growth",
        printed("104", "TB/day"),
        GROWTH,
        partial(found.median_growth, method="paper"),
        needs,
        Explained("118.2", WINDOW),
    )
    yield PublishedCheck(
        "Fig. 1",
        "long tail: mean over median",
        within("133 over 104", 133 / 104, "times", (132.5 / 104.5, 133.5 / 103.5), "both to half a unit"),
        GROWTH,
        found.growth_skew,
        needs,
        Explained("1.302", WINDOW),
    )
    yield PublishedCheck(
        "Fig. 1",
        "mean daily growth, strictly",
        printed("133", "TB/day"),
        STRICT,
        partial(found.mean_growth, method="strict"),
        needs,
        Explained("155.6", f"{WINDOW}; one day with 138 of 248 OSTs is left out"),
    )
    yield PublishedCheck(
        "Fig. 1",
        "median daily growth, strictly",
        printed("104", "TB/day"),
        STRICT,
        partial(found.median_growth, method="strict"),
        needs,
        Explained("119.2", f"{WINDOW}; one day with 138 of 248 OSTs is left out"),
    )
    yield out_of_reach("Fig. 1", "the bars of the histogram", "curve", "", PICTURE)
    yield out_of_reach("section III", "age at which data may be purged", "28", "days", ASSUMED)
    yield out_of_reach("section III", "share of the capacity that a purge removes", "50", "%", ASSUMED)
    for ssi, text, from_days in ((3, "22", "25.8"), (4, "30", "34.5")):
        yield PublishedCheck(
            "Eq. 1",
            f"capacity for SSI {ssi}",
            printed(text, "PB"),
            "plan capacity with 133 TB/day, 28 days, 0.5",
            partial(found.planned_capacity, ssi=ssi),
        )
        yield PublishedCheck(
            "Eq. 1",
            f"capacity for SSI {ssi}, growth from the data",
            printed(text, "PB"),
            "plan capacity with the growth of the shipped days",
            partial(found.planned_capacity_from_days, ssi=ssi),
            needs,
            Explained(from_days, WINDOW),
        )


def _reserved(evidence: PublicData) -> float:
    return max(one.reserved_pct for one in over_provisioning(TRINITY))


def _gained(evidence: PublicData) -> float:
    return max(one.capacity_gain_pct for one in over_provisioning(TRINITY))


def _one_byte_blocks(evidence: PublicData, writes: int, layout: StripeLayout) -> float:
    """RAID blocks written for so many writes of one byte."""
    return writes * stripe_bytes_written(1, layout.data, layout.parity, RAID_BLOCK) / RAID_BLOCK


def _full_stripes(evidence: PublicData) -> float:
    factor = read_modify_write_factor({HIGH.data * RAID_BLOCK: 1}, HIGH.data, HIGH.parity, RAID_BLOCK)
    assert factor is not None
    return factor


def _drives() -> Iterator[PublishedCheck]:
    yield out_of_reach("section IV", "ratings of drives in earlier systems", "5; 10", "DWPD", CITED)
    example = "plan endurance: 4 TB at 3 DWPD sold as 3.2 TB at 10 DWPD"
    yield PublishedCheck("section IV", "capacity reserved for 10 DWPD", printed("20", "%"), example, _reserved)
    yield PublishedCheck("section IV", "capacity gained from 10 to 3 DWPD", printed("25", "%"), example, _gained)
    yield PublishedCheck(
        "Fig. 2",
        "years in service",
        within("about 3.4", 3.4, "years", (3.3, 3.5), "about: one unit of the last digit", "printed"),
        f"most power-on hours of any drive, {DUMP}",
        found.years_in_service,
        (DRIVES,),
    )
    drift = Explained(
        "10.16",
        "it rises by 0.004 a day, on an idle drive: the study's dump seems a day or two older; the data at hand have"
        " none between 2019-03-08 and 2019-04-01",
    )
    for statistic, words, text in (
        ("min", "smallest WAF", "1.35"),
        ("median", "median WAF", "2.68"),
        ("p95", "95th percentile of WAF", "3.17"),
        ("max", "largest WAF", "10.15"),
    ):
        yield PublishedCheck(
            "Fig. 2",
            words,
            printed(text),
            f"lifetime flash bytes ÷ host bytes of each drive, {DUMP}",
            partial(found.waf, statistic=statistic),
            (DRIVES,),
            drift if statistic == "max" else None,
        )
    yield PublishedCheck(
        "Fig. 2",
        "drives with WAF > 5 that low use explains",
        within("these outliers", 100.0, "%", (100.0, 100.0), "all of them; low use: below half of the median"),
        "drives: outliers with less than half the median lifetime writes",
        found.idle_among_amplified,
        (DRIVES,),
    )
    yield PublishedCheck(
        "Fig. 2",
        "lifetime writes of drives with WAF > 5 over those of the others",
        at_most("extremely low", 10.0, "%", "extremely low is read as a tenth of the others' or less"),
        "drives: medians of lifetime writes ÷ capacity",
        found.use_of_amplified,
        (DRIVES,),
    )
    yield PublishedCheck(
        "section IV.A",
        "drives with WAF > 5 among all drives of their servers",
        within("all", 100.0, "%", (100.0, 100.0), "all: not one of another partition"),
        "a partition is made of whole servers; which one it is the data do not tell",
        found.amplified_servers,
        (DRIVES,),
    )
    yield out_of_reach("Fig. 2", "the curves", "curve", "", PICTURE)
    yield PublishedCheck(
        "section IV.A",
        "blocks written for a write below one block, P = 2",
        within("P + 1", 3.0, "blocks", (3.0, 3.0), "a count"),
        "read-modify-write, 8+2",
        partial(_one_byte_blocks, writes=1, layout=HIGH),
    )
    yield PublishedCheck(
        "section IV.A",
        "amplification of full-stripe writes",
        printed("1.0", "times"),
        "read-modify-write, 8+2",
        _full_stripes,
    )
    yield PublishedCheck(
        "section IV.A",
        "blocks written for 1,000 writes of one byte",
        printed("1000", "blocks"),
        "read-modify-write without parity, which the example leaves out",
        partial(_one_byte_blocks, writes=1000, layout=StripeLayout(8, 0)),
    )
    sizes = f"{CITED}; transfer sizes were not recorded on Cori"
    yield out_of_reach("section IV.A", "the two most frequent transfer sizes", "4 KiB; 1 MiB", "", sizes)


def _needed(evidence: PublicData, ssi: float, layout: StripeLayout, waf: float) -> float:
    return found.endurance_case(given("ssi", ssi), given("fswpd", 0.024), layout, given("waf", waf)).dwpd


def _class(evidence: PublicData) -> float:
    case = found.endurance_case(given("ssi", 4), given("fswpd", 0.024), HIGH, given("waf", 3.17))
    assert case.class_dwpd is not None
    return case.class_dwpd


def _on_twice_the_drive(evidence: PublicData) -> float:
    sizes = 1_600_000_000_000, 3_200_000_000_000
    case = found.endurance_case(given("ssi", 4), given("fswpd", 0.024), HIGH, given("waf", 3.17), *sizes)
    return case.larger_drives[1].dwpd / case.larger_drives[0].dwpd


def _overhead(evidence: PublicData, layout: StripeLayout) -> float:
    return layout.overhead


def _endurance() -> Iterator[PublishedCheck]:
    needs = (IO_RATES, FULLNESS)
    both = (IO_RATES, FULLNESS, DRIVES)
    yield PublishedCheck(
        "Fig. 3",
        "one file-system write",
        printed("30.5", "PB"),
        "capacity: the last complete reading of fullness",
        found.scratch_petabytes,
        (FULLNESS,),
    )
    yield PublishedCheck(
        "Fig. 3",
        "days in the window",
        within("two years", 730.0, "days", (729.5, 731.5), "365 days a year, a leap day more or less"),
        "days with bytes written, the two years to 2019-04-02",
        found.days_with_writes,
        needs,
        Explained("713", "the shipped file has no line for 17 days"),
    )
    yield PublishedCheck(
        "Fig. 3",
        "mean file-system writes per day",
        printed("0.024"),
        "bytes written ÷ capacity, the two years to 2019-04-02",
        found.mean_fswpd,
        needs,
    )
    yield PublishedCheck(
        "Fig. 3",
        "mean bytes written per day",
        within("0.024 × 30.5", 0.732, "PB", (0.0235 * 30.45, 0.0245 * 30.55), "both factors to half a unit"),
        "bytes written, the two years to 2019-04-02",
        found.written_per_day,
        needs,
    )
    yield out_of_reach("Fig. 3", "days in the tail of the histogram", "labels", "days", PICTURE)
    cases = (("smallest", 3, LOW, "1.2", 2.68, "median", "0.23"), ("largest", 4, HIGH, "1.25", 3.17, "p95", "0.38"))
    for which, ssi, layout, overhead, waf, statistic, dwpd in cases:
        written = f"{layout.data + layout.parity}/{layout.data}"
        ends = (layout.overhead, layout.overhead)
        yield PublishedCheck(
            "Eq. 3",
            f"blocks written per block of data, {layout}",
            within(written, float(overhead), "", ends, "a fraction of whole numbers", "printed"),
            "stripe layout",
            partial(_overhead, layout=layout),
        )
        yield PublishedCheck(
            "Eq. 3",
            f"{which} DWPD",
            printed(dwpd, "DWPD"),
            f"plan endurance: SSI {ssi}, {layout}, WAF {waf}, 0.024 FSWPD",
            partial(_needed, ssi=ssi, layout=layout, waf=waf),
        )
        yield PublishedCheck(
            "Eq. 3",
            f"{which} DWPD, from the data",
            printed(dwpd, "DWPD"),
            f"plan endurance: SSI {ssi}, {layout}; WAF ({statistic}) and FSWPD as recomputed",
            partial(found.measured_dwpd, ssi=ssi, layout=layout, statistic=statistic),
            both,
        )
    yield PublishedCheck(
        "section IV.C",
        "rating that suffices",
        within("1", 1.0, "DWPD", (1.0, 1.0), "a class of drives"),
        "plan endurance: the lowest class at or above the largest need",
        _class,
    )
    yield PublishedCheck(
        "Eq. 4",
        "DWPD on drives of twice the size over that on the old ones",
        within("c_ref ÷ c_new", 0.5, "times", (0.5, 0.5), "a fraction of whole numbers"),
        "plan endurance: larger drives",
        _on_twice_the_drive,
    )


def _devices(evidence: PublicData) -> float:
    return found.inode_count(evidence, "blk", "chr")


def _metadata() -> Iterator[PublishedCheck]:
    needs = (SIZES,)
    share = "the smallest files up to the bin that holds the 95th percentile, the middle of bins"
    yield PublishedCheck(
        "section V",
        "share of files that are small",
        printed("95", "%"),
        share,
        partial(found.small_files, part="files"),
        needs,
        Explained("96.8", "a histogram can be cut between bins only: 94.1 % are up to 16 MiB, 96.8 % up to 32 MiB"),
    )
    yield PublishedCheck(
        "section V",
        "share of the bytes they hold",
        printed("5", "%"),
        share,
        partial(found.small_files, part="bytes"),
        needs,
    )
    yield out_of_reach("Fig. 4", "the curves of file size and file mass", "curve", "", PICTURE)
    for end, text in (("low", "512.5"), ("high", "1024")):
        yield PublishedCheck(
            "section V.A",
            f"{'least' if end == 'low' else 'most'} bytes of 512 files of 1025 to 2048 bytes",
            printed(text, "KiB"),
            "ends of a bin",
            partial(found.bin_mass, end=end),
        )
    yield out_of_reach("section V.B", "room for an inode on an MDT", "4", "KiB", ASSUMED)
    yield PublishedCheck(
        "Fig. 5",
        "largest directory",
        within("nearly 1", 1.0, "GiB", (1.0, 1.0), "a histogram tells the bin: above 512 MiB, up to 1 GiB"),
        "upper end of the last bin that holds a directory",
        found.largest_directory,
        needs,
    )
    yield PublishedCheck(
        "section V.B",
        "entries of the largest directory",
        at_least("over 8", 8.0, "million", "over: more than"),
        "upper end of the bin below the last that holds a directory",
        found.widest_directory,
        (WIDTHS,),
    )
    yield PublishedCheck(
        "section V.B",
        "directories that large",
        within("a single", 1.0, "", (1.0, 1.0), "a count"),
        "directories of more than 8,388,608 entries",
        found.very_wide_directories,
        (WIDTHS,),
    )
    yield PublishedCheck(
        "Fig. 5",
        "block and character devices",
        within("none", 0.0, "", (0.0, 0.0), "a count"),
        "inodes of these types",
        _devices,
        needs,
    )
    yield PublishedCheck(
        "Fig. 5",
        "inodes other than files of at most 4 KiB",
        at_least("predominant", 50.0, "%", "predominant: more than all others together"),
        "directories, links, pipes and sockets by size",
        found.small_directories,
        needs,
    )
    yield from _mdt_capacity()


def _mdt_capacity() -> Iterator[PublishedCheck]:
    needs = (SIZES,)
    plan = "plan metadata for 30 PB"
    drawn = f"{plan}; the study draws it, the value is an independent calculation"
    yield out_of_reach("Fig. 6", "capacity of the new file system", "30", "PB", ASSUMED)
    values: tuple[tuple[Method, int, str, str, str], ...] = (
        ("paper", 64 * KIB, "64 KiB", "dom", "18.4 45.6 126.6"),
        ("paper", MIB, "1 MiB", "dom", "130.0 307.6 805.5"),
        ("tight", 64 * KIB, "64 KiB", "dom", "31.7 45.6 73.4"),
        ("tight", MIB, "1 MiB", "dom", "201.8 307.6 517.9"),
    )
    for method, dom_bytes, size, part, texts in values:
        for end, text in zip(("min", "avg", "max"), texts.split(), strict=True):
            yield PublishedCheck(
                "Fig. 6",
                f"C_DOM at S0 = {size}, {end}, method {method}",
                reference(text, "TiB"),
                drawn,
                partial(found.at_threshold, method=method, dom_bytes=dom_bytes, part=f"{part}_{end}"),
                needs,
            )
    inodes: tuple[tuple[Method, str], ...] = (("paper", "6.14"), ("tight", "6.24"))
    for inode_method, text in inodes:
        yield PublishedCheck(
            "Fig. 6",
            f"C_inode, avg, method {inode_method}",
            reference(text, "TiB"),
            drawn,
            partial(found.at_threshold, method=inode_method, dom_bytes=MIB, part="inode_avg"),
            needs,
        )
    yield PublishedCheck(
        "Fig. 6",
        "C_inode at S0 = 1 MiB over that at 64 KiB",
        within("constant in x", 1.0, "times", (1.0, 1.0), "the same number"),
        plan,
        found.inodes_by_threshold,
        needs,
    )
    yield PublishedCheck(
        "Fig. 6",
        "average C_DOM where S0 is above every file",
        within("S0 → C_new", 30.0, "PB", (29.999, 30.001), "all data, to the bytes that rounding moves"),
        plan,
        found.all_on_mdts,
        needs,
    )
    yield PublishedCheck(
        "section V.C",
        "increase of S0 from 512 TiB to 1 PiB, by powers of two",
        within("fourfold", 4.0, "times", (4.0, 4.0), "powers of two, as the figure is drawn"),
        f"{plan}: thresholds whose average need is nearest (2 MiB and 8 MiB)",
        found.threshold_gain_by_powers,
        needs,
    )
    yield PublishedCheck(
        "section V.C",
        "increase of S0 from 512 TiB to 1 PiB, between powers",
        within("fourfold", 4.0, "times", (3.5, 4.5), "four to half a unit"),
        f"{plan}, thresholds in steps of a quarter of a power of two",
        found.threshold_gain,
        needs,
        Explained("3.0", "read between powers of two it is 2.2 MiB to 6.6 MiB"),
    )
    knee = "no criterion is given; the knee that `iolens plan metadata` names goes by files that fit whole"
    yield out_of_reach("section V.C", "threshold above which more does not pay", "several GiB", "", knee)
    yield PublishedCheck(
        "section V.C",
        "raw bytes per byte on MDTs (5+5) over OSTs (8+2)",
        at_least("higher", 1.0, "times", "a comparison"),
        "stripe layouts",
        _mdt_over_ost,
    )
    small = "how small S0 must be for that is not said, nor where the axis begins"
    yield out_of_reach("section V.C", "C_DOM at small S0 against C_inode", "much smaller", "", small)
    yield out_of_reach("Fig. 6", "the curves", "curve", "", PICTURE)


def _mdt_over_ost(evidence: PublicData) -> float:
    return StripeLayout(5, 5).overhead / HIGH.overhead


STUDY: Final = Study(
    "P",
    "Designing an All-Flash Lustre File System for the 2020 NERSC Perlmutter System (Lockwood et al.; CUG 2019)",
    "https://escholarship.org/uc/item/25k024cr",
    (*_reference_system(), *_capacity(), *_drives(), *_endurance(), *_metadata()),
)
