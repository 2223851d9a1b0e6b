"""Study P: the design of an all-flash Lustre file system from the telemetry of Cori (NERSC, 2019): every number in it.

In the order of the paper. What it prints without data behind it (inventories, assumptions, other people's numbers) is
listed too, so that nothing is left out silently.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from iolens.models.dom import Method
from iolens.plans.metadata import StripeLayout
from iolens.units import KIB, MIB
from iolens.validation import paper_p_evidence as data
from iolens.validation.checks import (
    Explained,
    PublishedCheck,
    Study,
    at_least,
    at_most,
    exactly,
    out_of_reach,
    printed,
    reference,
    within,
)
from iolens.validation.paper_p_evidence import DRIVES, FULLNESS, HIGH, IO_RATES, LOW, PB, PLAIN, SIZES, WIDTHS

ASSUMED: Final = "an assumption of the study: an input, not a result"
INVENTORY: Final = "an inventory of the machine: no telemetry tells it"
CITED: Final = "somebody else's result, which the study cites"
PICTURE: Final = "drawn, not printed: there is no number to compare with"
BENCHMARK: Final = "a benchmark of the machine; daily sums do not show a peak"
WINDOW: Final = "the study's window is two years; the shipped file has 14 months, 2017-02-14 to 2018-04-25"
ONE_DAY: Final = f"{WINDOW}; one day with 138 of 248 OSTs is left out"
TWO_YEARS: Final = within("two years", 730.0, "days", (729.5, 731.5), "365 days a year, a leap day more or less")
DUMP: Final = "the dump of 2019-04-01"
WAF: Final = f"lifetime flash bytes ÷ host bytes of each drive, {DUMP}"
GROWTH: Final = "the study's way (change of the mean OST fullness × capacity)"
STRICT: Final = "bytes used on neighbouring days with all OSTs"
EXAMPLE: Final = "plan endurance: 4 TB at 3 DWPD sold as 3.2 TB at 10 DWPD"
WRITES: Final = (IO_RATES, FULLNESS)
SMALL: Final = "the smallest files up to the bin that holds the 95th percentile, the middle of bins"
PLAN: Final = "plan metadata for 30 PB"
DRAWN: Final = f"{PLAN}; the study draws it, the value is an independent calculation"
DRIFT: Final = (
    "it rises by 0.004 a day, on an idle drive: the study's dump seems a day or two older; the data at hand have"
    " none between 2019-03-08 and 2019-04-01"
)

# fmt: off
REFERENCE_SYSTEM: Final = (
    out_of_reach("abstract", "capacity of the file system to be built", "30", "PB",
        "what was bought, not a result; Eq. 1 gives it as the upper end"),
    out_of_reach("section I", "bandwidth of the largest all-disk file systems", "1", "TB/s", CITED),
    out_of_reach("section II.A", "compute nodes of Cori, of either kind", "9688; 2388", "nodes", INVENTORY),
    PublishedCheck("Table I", "burst buffer: capacity", printed("1.84", "PB"), f"sum over the drives, {DUMP}",
        data.of_drives("capacity_bytes", PB), (DRIVES,)),
    out_of_reach("Table I", "burst buffer: peak bandwidth", "1740", "GB/s", BENCHMARK),
    PublishedCheck("Table I", "burst buffer: data servers", printed("288"), f"hosts of the drives, {DUMP}",
        data.drive_hosts, (DRIVES,)),
    PublishedCheck("Table I", "burst buffer: drives", printed("1152"), f"drives read, {DUMP}",
        data.of_drives("drives"), (DRIVES,)),
    PublishedCheck("Table I", "scratch: capacity", printed("30.5", "PB"), "the last complete reading of fullness",
        data.SCRATCH_PETABYTES, (FULLNESS,)),
    out_of_reach("Table I", "scratch: peak bandwidth", "717", "GB/s", BENCHMARK),
    PublishedCheck("Table I", "scratch: data servers", printed("248"), "OSTs of a complete reading: one to each server",
        data.scratch_targets, (FULLNESS,)),
    out_of_reach("Table I", "scratch: drives", "10168", "", f"{INVENTORY}; tickets name failed ones only"),
    out_of_reach("section II.A", "intervals of LMT and of lfs df", "5 s; 5 min", "",
        "how the authors sampled; what is public are daily sums and daily readings"),
    out_of_reach("section II.A", "version of Robinhood", "3.1.4", "", "no measurement"),
    out_of_reach("section II.B", "capability of the new system over the old (SSI)", "3; 4", "times", ASSUMED),
)

CAPACITY: Final = (
    PublishedCheck("section III", "readings of fullness behind the growth", TWO_YEARS, "days from reading to reading",
        data.growth_days, (FULLNESS,), Explained("430", WINDOW)),
    PublishedCheck("Fig. 1", "mean daily growth", printed("133", "TB/day"), GROWTH,
        data.of_growth("mean", "paper"), (FULLNESS,), Explained("153.8", WINDOW)),
    PublishedCheck("Fig. 1", "median daily growth", printed("104", "TB/day"), GROWTH,
        data.of_growth("median", "paper"), (FULLNESS,), Explained("118.2", WINDOW)),
    PublishedCheck("Fig. 1", "long tail: mean over median",
        within("133 over 104", 133 / 104, "times", (132.5 / 104.5, 133.5 / 103.5), "both to half a unit"), GROWTH,
        data.growth_skew, (FULLNESS,), Explained("1.302", WINDOW)),
    PublishedCheck("Fig. 1", "mean daily growth, strictly", printed("133", "TB/day"), STRICT,
        data.of_growth("mean", "strict"), (FULLNESS,), Explained("155.6", ONE_DAY)),
    PublishedCheck("Fig. 1", "median daily growth, strictly", printed("104", "TB/day"), STRICT,
        data.of_growth("median", "strict"), (FULLNESS,), Explained("119.2", ONE_DAY)),
    out_of_reach("Fig. 1", "the bars of the histogram", "curve", "", PICTURE),
    out_of_reach("section III", "age at which data may be purged", "28", "days", ASSUMED),
    out_of_reach("section III", "share of the capacity that a purge removes", "50", "%", ASSUMED),
    *(check for ssi, petabytes, instead in ((3, "22", "25.8"), (4, "30", "34.5")) for check in (
        PublishedCheck("Eq. 1", f"capacity for SSI {ssi}", printed(petabytes, "PB"),
            "plan capacity with 133 TB/day, 28 days, 0.5", partial(data.planned_capacity, ssi=ssi)),
        PublishedCheck("Eq. 1", f"capacity for SSI {ssi}, growth from the data", printed(petabytes, "PB"),
            "plan capacity with the growth of the shipped days",
            partial(data.planned_capacity_from_days, ssi=ssi), (FULLNESS,), Explained(instead, WINDOW)),
    )),
)

ENDURANCE_OF_DRIVES: Final = (
    out_of_reach("section IV", "ratings of drives in earlier systems", "5; 10", "DWPD", CITED),
    PublishedCheck("section IV", "capacity reserved for 10 DWPD", printed("20", "%"), EXAMPLE, data.reserved_pct),
    PublishedCheck("section IV", "capacity gained from 10 to 3 DWPD", printed("25", "%"), EXAMPLE, data.gained_pct),
    PublishedCheck("Fig. 2", "years in service",
        within("about 3.4", 3.4, "years", (3.3, 3.5), "about: one unit of the last digit", "printed"),
        f"most power-on hours of any drive, {DUMP}",
        data.of_drives("power_on_hours.max", data.HOURS_PER_YEAR), (DRIVES,)),
    PublishedCheck("Fig. 2", "smallest WAF", printed("1.35"), WAF, data.of_drives("waf.min"), (DRIVES,)),
    PublishedCheck("Fig. 2", "median WAF", printed("2.68"), WAF, data.of_drives("waf.median"), (DRIVES,)),
    PublishedCheck("Fig. 2", "95th percentile of WAF", printed("3.17"), WAF, data.of_drives("waf.p95"), (DRIVES,)),
    PublishedCheck("Fig. 2", "largest WAF", printed("10.15"), WAF, data.of_drives("waf.max"), (DRIVES,),
        Explained("10.16", DRIFT)),
    PublishedCheck("Fig. 2", "drives with WAF > 5 that low use explains",
        exactly("these outliers", 100.0, "%", "all of them; low use: below half of the median"),
        "drives: outliers with less than half the median lifetime writes", data.idle_among_amplified, (DRIVES,)),
    PublishedCheck("Fig. 2", "lifetime writes of drives with WAF > 5 over those of the others",
        at_most("extremely low", 10.0, "%", "extremely low is read as a tenth of the others' or less"),
        "drives: medians of lifetime writes ÷ capacity", data.use_of_amplified, (DRIVES,)),
    PublishedCheck("section IV.A", "drives with WAF > 5 among all drives of their servers",
        exactly("all", 100.0, "%", "all: not one of another partition"),
        "a partition is made of whole servers; which one it is the data do not tell",
        data.amplified_servers, (DRIVES,)),
    out_of_reach("Fig. 2", "the curves", "curve", "", PICTURE),
    PublishedCheck("section IV.A", "blocks written for a write below one block, P = 2",
        exactly("P + 1", 3.0, "blocks", "a count"), "read-modify-write, 8+2",
        partial(data.one_byte_blocks, writes=1, layout=HIGH)),
    PublishedCheck("section IV.A", "amplification of full-stripe writes", printed("1.0", "times"),
        "read-modify-write, 8+2", data.full_stripes),
    PublishedCheck("section IV.A", "blocks written for 1,000 writes of one byte", printed("1000", "blocks"),
        "read-modify-write without parity, which the example leaves out",
        partial(data.one_byte_blocks, writes=1000, layout=PLAIN)),
    out_of_reach("section IV.A", "the two most frequent transfer sizes", "4 KiB; 1 MiB", "",
        f"{CITED}; transfer sizes were not recorded on Cori"),
)

ENDURANCE: Final = (
    PublishedCheck("Fig. 3", "one file-system write", printed("30.5", "PB"),
        "capacity: the last complete reading of fullness", data.SCRATCH_PETABYTES, (FULLNESS,)),
    PublishedCheck("Fig. 3", "days in the window", TWO_YEARS, "days with bytes written, the two years to 2019-04-02",
        data.DAYS_WITH_WRITES, WRITES, Explained("713", "the shipped file has no line for 17 days")),
    PublishedCheck("Fig. 3", "mean file-system writes per day", printed("0.024"),
        "bytes written ÷ capacity, the two years to 2019-04-02", data.MEAN_FSWPD, WRITES),
    PublishedCheck("Fig. 3", "mean bytes written per day",
        within("0.024 × 30.5", 0.732, "PB", (0.0235 * 30.45, 0.0245 * 30.55), "both factors to half a unit"),
        "bytes written, the two years to 2019-04-02", data.written_per_day, WRITES),
    out_of_reach("Fig. 3", "days in the tail of the histogram", "labels", "days", PICTURE),
    *(check for which, ssi, layout, fraction, waf, statistic, dwpd in (
        ("smallest", 3, LOW, "12/10", 2.68, "median", "0.23"),
        ("largest", 4, HIGH, "10/8", 3.17, "p95", "0.38"),
    ) for check in (
        PublishedCheck("Eq. 3", f"blocks written per block of data, {layout}",
            exactly(fraction, layout.overhead, "", "a fraction of whole numbers", "printed"), "stripe layout",
            partial(data.overhead, layout=layout)),
        PublishedCheck("Eq. 3", f"{which} DWPD", printed(dwpd, "DWPD"),
            f"plan endurance: SSI {ssi}, {layout}, WAF {waf}, 0.024 FSWPD",
            partial(data.needed_dwpd, ssi=ssi, layout=layout, waf=waf)),
        PublishedCheck("Eq. 3", f"{which} DWPD, from the data", printed(dwpd, "DWPD"),
            f"plan endurance: SSI {ssi}, {layout}; WAF ({statistic}) and FSWPD as recomputed",
            partial(data.measured_dwpd, ssi=ssi, layout=layout, statistic=statistic), (*WRITES, DRIVES)),
    )),
    PublishedCheck("section IV.C", "rating that suffices", exactly("1", 1.0, "DWPD", "a class of drives"),
        "plan endurance: the lowest class at or above the largest need", data.class_dwpd),
    PublishedCheck("Eq. 4", "DWPD on drives of twice the size over that on the old ones",
        exactly("c_ref ÷ c_new", 0.5, "times", "a fraction of whole numbers"),
        "plan endurance: larger drives", data.on_twice_the_drive),
)

C_DOM: Final[tuple[tuple[Method, int, str, dict[str, str]], ...]] = (
    ("paper", 64 * KIB, "64 KiB", {"min": "18.4", "avg": "45.6", "max": "126.6"}),
    ("paper", MIB, "1 MiB", {"min": "130.0", "avg": "307.6", "max": "805.5"}),
    ("tight", 64 * KIB, "64 KiB", {"min": "31.7", "avg": "45.6", "max": "73.4"}),
    ("tight", MIB, "1 MiB", {"min": "201.8", "avg": "307.6", "max": "517.9"}),
)
C_INODE: Final[tuple[tuple[Method, str], ...]] = (("paper", "6.14"), ("tight", "6.24"))
METADATA: Final = (
    PublishedCheck("section V", "share of files that are small", printed("95", "%"), SMALL,
        data.small_files("files"), (SIZES,),
        Explained("96.8", "a histogram can be cut between bins only: 94.1 % are up to 16 MiB, 96.8 % up to 32 MiB")),
    PublishedCheck("section V", "share of the bytes they hold", printed("5", "%"), SMALL,
        data.small_files("bytes"), (SIZES,)),
    out_of_reach("Fig. 4", "the curves of file size and file mass", "curve", "", PICTURE),
    PublishedCheck("section V.A", "least bytes of 512 files of 1025 to 2048 bytes", printed("512.5", "KiB"),
        "ends of a bin", partial(data.bin_mass, end="low")),
    PublishedCheck("section V.A", "most bytes of 512 files of 1025 to 2048 bytes", printed("1024", "KiB"),
        "ends of a bin", partial(data.bin_mass, end="high")),
    out_of_reach("section V.B", "space for an inode on an MDT", "4", "KiB", ASSUMED),
    PublishedCheck("Fig. 5", "largest directory",
        exactly("nearly 1", 1.0, "GiB", "a histogram tells the bin: above 512 MiB, up to 1 GiB"),
        "upper end of the last bin that holds a directory", data.largest_directory, (SIZES,)),
    PublishedCheck("section V.B", "entries of the largest directory",
        at_least("over 8", 8.0, "million", "over: more than"),
        "upper end of the bin below the last that holds a directory", data.widest_directory, (WIDTHS,)),
    PublishedCheck("section V.B", "directories that large", exactly("a single", 1.0, "", "a count"),
        "directories of more than 8,388,608 entries", data.very_wide_directories, (WIDTHS,)),
    PublishedCheck("Fig. 5", "block and character devices", exactly("none", 0.0, "", "a count"),
        "inodes of these types", data.device_inodes, (SIZES,)),
    PublishedCheck("Fig. 5", "inodes other than files of at most 4 KiB",
        at_least("predominant", 50.0, "%", "predominant: more than all others together"),
        "directories, links, pipes and sockets by size", data.small_directories, (SIZES,)),
    out_of_reach("Fig. 6", "capacity of the new file system", "30", "PB", ASSUMED),
    *(PublishedCheck("Fig. 6", f"C_DOM at S0 = {size}, {end}, method {method}", reference(tebibytes, "TiB"), DRAWN,
        partial(data.at_threshold, method=method, dom_bytes=dom_bytes, part=f"dom_{end}"), (SIZES,))
        for method, dom_bytes, size, values in C_DOM for end, tebibytes in values.items()),
    *(PublishedCheck("Fig. 6", f"C_inode, avg, method {method}", reference(tebibytes, "TiB"), DRAWN,
        partial(data.at_threshold, method=method, dom_bytes=MIB, part="inode_avg"), (SIZES,))
        for method, tebibytes in C_INODE),
    PublishedCheck("Fig. 6", "C_inode at S0 = 1 MiB over that at 64 KiB",
        exactly("constant in x", 1.0, "times", "the same number"), PLAN, data.inodes_by_threshold, (SIZES,)),
    PublishedCheck("Fig. 6", "average C_DOM where S0 is above every file",
        within("S0 → C_new", 30.0, "PB", (29.999, 30.001), "all data, to the bytes that rounding moves"), PLAN,
        data.all_on_mdts, (SIZES,)),
    PublishedCheck("section V.C", "increase of S0 from 512 TiB to 1 PiB, by powers of two",
        exactly("fourfold", 4.0, "times", "powers of two, as the figure is drawn"),
        f"{PLAN}: thresholds whose average need is nearest (2 MiB and 8 MiB)",
        data.threshold_gain_by_powers, (SIZES,)),
    PublishedCheck("section V.C", "increase of S0 from 512 TiB to 1 PiB, between powers",
        within("fourfold", 4.0, "times", (3.5, 4.5), "four to half a unit"),
        f"{PLAN}, thresholds in steps of a quarter of a power of two", data.threshold_gain, (SIZES,),
        Explained("3.0", "read between powers of two it is 2.2 MiB to 6.6 MiB")),
    out_of_reach("section V.C", "threshold above which more does not pay", "several GiB", "",
        "no criterion is given; the knee that `iolens plan metadata` names goes by files that fit whole"),
    PublishedCheck("section V.C", "raw bytes per byte on MDTs (5+5) over OSTs (8+2)",
        at_least("higher", 1.0, "times", "a comparison"), "stripe layouts",
        partial(data.overhead, layout=StripeLayout(5, 5), over=HIGH)),
    out_of_reach("section V.C", "C_DOM at small S0 against C_inode", "much smaller", "",
        "how small S0 must be for that is not said, nor where the axis begins"),
    out_of_reach("Fig. 6", "the curves", "curve", "", PICTURE),
)
# fmt: on

STUDY: Final = Study(
    "P",
    "Designing an All-Flash Lustre File System for the 2020 NERSC Perlmutter System (Lockwood et al.; CUG 2019)",
    "https://escholarship.org/uc/item/25k024cr",
    (*REFERENCE_SYSTEM, *CAPACITY, *ENDURANCE_OF_DRIVES, *ENDURANCE, *METADATA),
)
