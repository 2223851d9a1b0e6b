"""The next system, from a reference system: capacity, endurance, metadata, performance, and the rationale of all four.

Options are the inputs of plans: values, ranges such as `3..4`, lists, or names of statistics, so most of them are text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.question import BYTES, CAPACITY, DAY, FILE, SWITCH, WORDS, Option, choice, number, question, whole

if TYPE_CHECKING:
    from iolens.plans.capacity import CapacityPlan
    from iolens.plans.endurance import EndurancePlan
    from iolens.plans.metadata import MetadataPlan
    from iolens.plans.performance import PerformancePlan
    from iolens.plans.rationale import Rationale
    from iolens.questions.asking import Ask

SSI: Final = Option("ssi", "Speed of the new system over the old", default="1", metavar="LIST")
PURGES: Final = (
    Option("purge_days", "Days after which files may go", default="28", metavar="LIST"),
    Option("purge_fraction", "Share of capacity a purge reclaims", default="0.5", metavar="LIST"),
)
DAILY_GROWTH: Final = Option(
    "daily_growth", "Bytes gained per day, such as 133TB; default: from the store", metavar="SIZE"
)
GROWTH_METHOD: Final = Option("method", "How growth is found in the store", choice("strict", "paper"), "strict")
CUTOFF: Final = Option("cutoff", "Leave out growth before this day", DAY, metavar="DATE", at_url=False)
PURGE_TIMES: Final = (
    Option("purge_every", "Days between purges [as --purge-days]", whole(1), metavar="DAYS"),
    Option("clock", "Age that purges go by, where the store holds a scan", choice("atime", "mtime"), "atime"),
)
WHAT_IF: Final = Option(
    "what_if", "Cases for ssi, purge-days, purge-fraction or daily-growth; repeatable", metavar="NAME=LIST", many=True,
    at_url=False,
)  # fmt: skip
CASES: Final = Option(
    "cases",
    "One case: ssi, data, parity, waf, fswpd, rmw; what it leaves out comes from the options and the store",
    flag="--case", metavar="KEY=VALUE,...", many=True, at_url=False,
)  # fmt: skip
FACTORS: Final = (
    Option("layout", "Data and parity blocks of a stripe", default="8+2", metavar="LIST"),
    Option("waf", "Number, range, or median, p95, max, mean, fleet of the drives [median]", metavar="VALUE"),
    Option("fswpd", "Number, range, or mean, median, p95, max of the days [mean]", metavar="VALUE"),
    Option("rmw", "Read-modify-write factor, where it is known", metavar="VALUE"),
)
RAID_BLOCK: Final = Option(
    "raid_block", "Estimate it from the store's write sizes and this block", BYTES, metavar="SIZE"
)
REFERENCE_CAPACITY: Final = Option(
    "capacity", "Capacity of the reference system [from the store]", CAPACITY, metavar="SIZE"
)
DRIVES: Final = (
    Option("min_coverage", "Leave out days with less of them reported", number(0, 100), 95, metavar="PCT"),
    Option("drives_of", "File system whose drives tell the WAF [the same, or the only one]", metavar="NAME"),
    Option("classes", "DWPD on offer", WORDS, "0.3,1,3,10", metavar="LIST"),
    Option("warranty", "", number(0, above=True), 5, metavar="YEARS"),
    Option("reference_drive", "Drive that the cases speak of [from the store]", CAPACITY, metavar="SIZE"),
    Option("drive_sizes", "Other drives, at equal number of drives", WORDS, "", metavar="SIZES"),
)
USABLE: Final = Option(
    "usable", "What one drive offers at each rating", WORDS, "10=3.2TB,3=4TB", metavar="DWPD=SIZE,..."
)
FILE_SIZES: Final = Option(
    "file_sizes", "Histogram of sizes, or a listing of files; default: the newest scan in the store", FILE,
    metavar="FILE",
)  # fmt: skip
NEW_CAPACITY: Final = Option("capacity", "Capacity of the new file system, such as 30PB", metavar="SIZE")
DOM: Final = Option("dom", "DOM thresholds to answer for", WORDS, "64KiB,1MiB", metavar="SIZES")
INODES: Final = (
    Option("inode_size", "Space for an inode", BYTES, "4KiB", metavar="SIZE"),
    Option("largest_file", "Largest file, where the last bin has no upper end", BYTES, metavar="SIZE"),
)
COSTS: Final = (
    Option("cost_mdt", "Cost of a raw TB on MDTs", number(0), metavar="MONEY"),
    Option("cost_ost", "Cost of a raw TB on OSTs", number(0), metavar="MONEY"),
)
LAYOUT_MDT: Final = Option("layout_mdt", "Data and parity blocks of MDTs", default="5+5", metavar="D+P")
DEMAND: Final = (
    Option("percentile", "50, 95, 99, 100 of ticks", WORDS, "95,99,100", metavar="LIST"),
    Option(
        "demands", "Demand as known elsewhere, such as bytes_per_s=35GB/s or ops_per_s=2e6; repeatable",
        flag="--demand", metavar="MEASURE=VALUE", many=True, at_url=False,
    ),
)  # fmt: skip
SMALLER: Final = Option("smaller", "A system smaller than what is used today is meant", SWITCH)


def _plan(ask: Ask, name: str, options: dict[str, Any]) -> Any:
    """The plan of that name; the store is opened where it is named or needed."""
    from iolens.api.plans.making import PlanOptions, make_plan
    from iolens.api.plans.reference_system import StoreAccess

    access = StoreAccess(lambda: ask.store, lambda: ask.config, ask.is_named)
    return make_plan(name, access, ask.scope, PlanOptions(options, ask.given), ask.timezone, ask.listener, ask.command)


@question(
    "plan capacity", "How much capacity: growth, purge policy, the new system's speed",
    SSI, *PURGES, DAILY_GROWTH, GROWTH_METHOD, CUTOFF,
    replace(REFERENCE_CAPACITY, meaning="Capacity of the reference system, for --method paper"),
    *PURGE_TIMES, WHAT_IF, SMALLER,
    examples=(
        "--ssi 3,4 --daily-growth 133TB",
        "--store centre --ssi 3..4 --method paper --cutoff 2017-04-02",
        "-f scratch --ssi 3 --what-if purge-days=14,28,56 --figure growth.png",
    ),
)  # fmt: skip
def capacity(ask: Ask, **options: Any) -> CapacityPlan:
    """Capacity of the next system: SSI · (purge days ÷ purge fraction) · daily growth.

    A LIST makes one case for each of its members; a member such as 3..4 is a range, with a low and a high answer. With
    --daily-growth no store is opened unless --store or --filesystem names one. Where the store holds a scan with the
    ages of files, the answer says which bytes each purge policy would leave.
    """
    return _plan(ask, "capacity", options)


@question(
    "plan endurance", "How much endurance drives need, and which class suffices",
    CASES, SSI, *FACTORS, RAID_BLOCK, REFERENCE_CAPACITY,
    Option("new_capacity", "Capacity of the new system [as the old]", CAPACITY, metavar="SIZE"),
    *DRIVES, USABLE, SMALLER,
    examples=(
        "--case ssi=3,data=10,parity=2,waf=2.68,fswpd=0.024",
        "-f scratch --case ssi=3,data=10,parity=2 --case ssi=4,data=8,parity=2,waf=p95",
        "-f scratch --ssi 3..4 --layout 8+2,10+2 --drives-of burst --figure writes.png",
    ),
)  # fmt: skip
def endurance(ask: Ask, **options: Any) -> EndurancePlan:
    """Drive writes per day of the next system: SSI · FSWPD · (D + P)/D · WAF, and the stricter ways to count.

    Without --case there is one for each member of --ssi and --layout. FSWPD, file-system writes per day, comes from the
    bytes written on each day and the capacity in the store; WAF from its drives. A number such as 2.5..3.2 is a range.
    No store is opened when every case says all it needs.
    """
    return _plan(ask, "endurance", options)


@question(
    "plan metadata", "How much metadata capacity: data on MDTs, inodes, price",
    FILE_SIZES, replace(NEW_CAPACITY, is_needed=True), DOM,
    Option("method", "How the band is found", choice("tight", "paper", "both"), "tight"),
    *INODES, *COSTS, LAYOUT_MDT,
    Option("layout_ost", "Data and parity blocks of OSTs", default="8+2", metavar="D+P"),
    SMALLER,
    examples=(
        "--file-sizes sizes.csv --capacity 30PB --dom 64KiB,1MiB",
        "--file-sizes sizes.csv --capacity 22PB..30PB --method both --figure mdt.png",
        "-f scratch --capacity 30PB --cost-mdt 400 --cost-ost 150 --layout-mdt 5+5 --layout-ost 8+2",
    ),
)  # fmt: skip
def metadata(ask: Ask, **options: Any) -> MetadataPlan:
    """Capacity of the metadata targets: the first bytes of every file (Data-on-MDT) and all inodes.

    Sizes come from a histogram or a listing of the reference system, or from the newest scan in the store. A histogram
    leaves a range inside its bins: the answer has a lowest, an average and a highest value.
    """
    return _plan(ask, "metadata", options)


@question(
    "plan performance", "How much bandwidth and how many operations per second",
    SSI, *DEMAND,
    examples=(
        "--filesystem scratch --ssi 3,4",
        "-f scratch --ssi 3..4 --percentile 99,100 --figure demand.png",
        "--ssi 4 --demand write_bytes_per_s=90GB/s",
    ),
)  # fmt: skip
def performance(ask: Ask, **options: Any) -> PerformancePlan:
    """Bandwidth and operations per second of the next system: demand at a percentile over ticks, times SSI.

    Bandwidth and operations come from the counters of data targets, disk I/Os from their histograms of sizes,
    metadata operations from the MDTs. With --demand no store is opened unless --store or --filesystem is given.
    """
    return _plan(ask, "performance", options)


def _without_place(design: Rationale) -> Rationale:
    """Where the store is is nobody's business."""
    return replace(design, about=replace(design.about, store=None))


@question(
    "plan rationale", "The whole design on a few pages, each number with its origin",
    Option("title", "Title of the document", metavar="TEXT"),
    Option("author", "Who answers for it", metavar="TEXT"),
    Option(
        "parts", "Plans that belong to the design", WORDS, "capacity,endurance,metadata,performance", metavar="LIST"
    ),
    replace(SSI, meaning="Speed of the new system over the old [those of --case, else 1]", default=None),
    replace(GROWTH_METHOD, meaning="Growth and bands of sizes our way, or as published"),
    replace(NEW_CAPACITY, meaning="Capacity of the new system [the largest that growth asks for]"),
    replace(REFERENCE_CAPACITY, name="reference_capacity", meaning="Of the reference system [from the store]"),
    *PURGES, replace(DAILY_GROWTH, meaning="Bytes gained per day, such as 133TB [from the store]"), CUTOFF,
    *PURGE_TIMES,
    replace(WHAT_IF, meaning="Grid over ssi, purge-days, purge-fraction or daily-growth; repeatable [half and twice "
            "the purge days]"),
    replace(CASES, meaning="One case of endurance: ssi, data, parity, waf, fswpd, rmw; repeatable"),
    *FACTORS, replace(RAID_BLOCK, meaning="Estimate it from the store's write sizes"), *DRIVES,
    replace(USABLE, default=""),
    replace(FILE_SIZES, meaning="Histogram of sizes, or a listing of files [the newest scan in the store]"),
    replace(DOM, meaning="DOM thresholds"), *INODES, LAYOUT_MDT, *COSTS, *DEMAND, SMALLER,
    published=_without_place,
    examples=(
        '--store centre -f scratch --ssi 3,4 -o plan.pdf --author "Storage group"',
        "-f scratch --case ssi=3,data=10,parity=2,waf=2.68 --file-sizes sizes.csv -o plan.html",
        "--daily-growth 133TB --ssi 3 --parts capacity",
    ),
)  # fmt: skip
def rationale(ask: Ask, **options: Any) -> Rationale:
    """Write the design of the next system down: what to buy, and why.

    What to buy comes first, in three sentences and a table, then capacity, endurance, metadata and performance, each
    with its equation and the values put in, its inputs with their origins, its range and interval, figures and
    what-ifs; then the data behind it, the assumptions, and the command that makes it again. Inputs come from the store
    or from options, as `iolens plan capacity|endurance|metadata|performance` read them. A part whose inputs are not
    known is named as missing, and the exit code is 3. SOURCE_DATE_EPOCH sets the date.
    """
    return _plan(ask, "rationale", options)
