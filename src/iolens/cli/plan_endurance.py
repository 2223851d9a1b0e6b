"""How much endurance the drives need: writes per day, stripes and write amplification, and which class suffices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.options import BYTES, CAPACITY, WORDS, Asked, analysis_options
from iolens.cli.reference_system import ReferenceSystem
from iolens.errors import NotKnownError, UsageError
from iolens.units import parse_capacity

if TYPE_CHECKING:
    from iolens.plans.endurance import CaseInputs, EndurancePlan, Provision
    from iolens.plans.inputs import Input
    from iolens.plans.layouts import StripeLayout

KEYS: Final = ("ssi", "data", "parity", "waf", "fswpd", "rmw")
Said = dict[str, tuple[str, str]]  # what is asked for, and where that comes from

FROM_STORE: Final = {"fswpd": "mean", "waf": "median"}  # what is taken where a case does not say


@click.command(
    "endurance",
    epilog="""\b
Examples:
  iolens plan endurance --case ssi=3,data=10,parity=2,waf=2.68,fswpd=0.024
  iolens plan endurance -f scratch --case ssi=3,data=10,parity=2 --case ssi=4,data=8,parity=2,waf=p95
  iolens plan endurance -f scratch --ssi 3..4 --layout 8+2,10+2 --drives-of burst --figure writes.png
""",
)
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="KEY=VALUE,...",
    help="One case: ssi, data, parity, waf, fswpd, rmw; what it leaves out comes from the options and the store",
)
@click.option("--ssi", default="1", show_default=True, metavar="LIST", help="Speed of the new system over the old")
@click.option("--layout", default="8+2", show_default=True, metavar="LIST", help="Data and parity blocks of a stripe")
@click.option("--waf", metavar="VALUE", help="Number, range, or median, p95, max, mean, fleet of the drives [median]")
@click.option("--fswpd", metavar="VALUE", help="Number, range, or mean, median, p95, max of the days [mean]")
@click.option("--rmw", metavar="VALUE", help="Read-modify-write factor, where it is known")
@click.option(
    "--raid-block", type=BYTES, metavar="SIZE", help="Estimate it from the store's write sizes and this block"
)
@click.option("--capacity", type=CAPACITY, metavar="SIZE", help="Capacity of the reference system [from the store]")
@click.option("--new-capacity", type=CAPACITY, metavar="SIZE", help="Capacity of the new system [as the old]")
@click.option("--min-coverage", type=click.FloatRange(0, 100), default=95, show_default=True, metavar="PCT",
              help="Leave out days with less of them reported")  # fmt: skip
@click.option("--drives-of", metavar="NAME", help="File system whose drives tell the WAF [the same, or the only one]")
@click.option("--classes", default="0.3,1,3,10", show_default=True, type=WORDS, metavar="LIST", help="DWPD on offer")
@click.option("--warranty", type=click.FloatRange(0, min_open=True), default=5, show_default=True, metavar="YEARS")
@click.option("--reference-drive", type=CAPACITY, metavar="SIZE", help="Drive that the cases speak of [from the store]")
@click.option("--drive-sizes", type=WORDS, default="", metavar="SIZES", help="Other drives, at equal number of drives")
@click.option("--usable", type=WORDS, default="10=3.2TB,3=4TB", show_default=True, metavar="DWPD=SIZE,...",
              help="What one drive offers at each rating")  # fmt: skip
@analysis_options
def COMMAND(
    asked: Asked,
    cases: tuple[str, ...],
    ssi: str,
    layout: str,
    waf: str | None,
    fswpd: str | None,
    rmw: str | None,
    raid_block: int | None,
    capacity: int | None,
    new_capacity: int | None,
    min_coverage: float,
    drives_of: str | None,
    classes: tuple[str, ...],
    warranty: float,
    reference_drive: int | None,
    drive_sizes: tuple[str, ...],
    usable: tuple[str, ...],
) -> None:
    """Drive writes per day of the next system: SSI · FSWPD · (D + P)/D · WAF, and the stricter ways to count.

    Without --case there is one for each member of --ssi and --layout. FSWPD, file-system writes per day, comes from the
    bytes written on each day and the capacity in the store; WAF from its drives. A number such as 2.5..3.2 is a range.
    No store is opened when every case says all it needs.
    """
    said = said_of(click.get_current_context(), {"ssi": ssi, "waf": waf, "fswpd": fswpd, "rmw": rmw, "layout": layout})
    wanted = cases_of(cases, said)
    told = {"capacity": capacity, "min_coverage": min_coverage, "drives_of": drives_of}
    with ReferenceSystem.of(asked, **told) as reference:
        result = endurance_plan(
            wanted,
            reference,
            raid_block=raid_block,
            new_capacity=_new_capacity(new_capacity),
            classes=classes,
            warranty_years=warranty,
            reference_drive=reference_drive,
            drive_sizes=drive_sizes,
            usable=usable,
        )
    asked.show(result)


def endurance_plan(
    wanted: Sequence[Said],
    reference: ReferenceSystem,
    *,
    raid_block: int | None,
    new_capacity: Input | None,
    must_compare: bool = True,
    classes: tuple[str, ...],
    warranty_years: float,
    reference_drive: int | None,
    drive_sizes: tuple[str, ...],
    usable: tuple[str, ...],
) -> EndurancePlan:
    """The plan, with what the cases do not say from the store.

    Unless capacities `must_compare`, the new one counts only where the old one is known anyway.
    """
    from iolens.plans.endurance import EQUAL_CAPACITY, plan_endurance
    from iolens.plans.inputs import value

    ratings = [_number(text, "--classes") for text in classes]
    sizes = [_bytes(text, "--drive-sizes") for text in drive_sizes]
    provisions = _provisions(usable)
    made = [_case(words, reference, raid_block) for words in wanted]
    drive = _reference_drive(reference_drive, drive_sizes, reference)
    ratio = None
    if new_capacity is not None and (must_compare or reference.knows_capacity()):
        ratio = _ratio(new_capacity, reference)
    return plan_endurance(
        made,
        writes=reference.found.get("writes"),
        waf=reference.found.get("waf"),
        filesystem=reference.found.get("filesystem"),
        classes=ratings,
        warranty_years=warranty_years,
        reference_drive=None if drive is None else value("reference_drive_bytes", *drive),
        drive_sizes=sizes,
        provisions=provisions,
        capacity_ratio=ratio or EQUAL_CAPACITY,
        usage=reference.usage(),
        new_capacity=new_capacity,
    )


def said_of(context: click.Context, options: Mapping[str, str | None]) -> Said:
    """What the options say, and whether that is the user's word or a default."""
    default = click.core.ParameterSource.DEFAULT
    return {
        name: (text, "default" if context.get_parameter_source(name) is default else f"option --{name}")
        for name, text in options.items()
        if text is not None
    }


def cases_of(texts: tuple[str, ...], said: Said) -> list[Said]:
    """What each `--case` says, completed by the options; without one, a case for every speed and stripe."""
    found = [{**said, **_case_words(text)} for text in texts]
    if any("," in case["ssi"][0] for case in found):
        raise UsageError("a --case without ssi takes it from --ssi, which must then be a single value or range")
    return found or _grid(said)


def _grid(said: Said) -> list[Said]:
    """A case for every speed and stripe."""
    (speeds, ssi_origin), (stripes, layout_origin) = said["ssi"], said["layout"]
    return [
        {**said, "ssi": (speed.strip(), ssi_origin), "layout": (stripe, layout_origin)}
        for speed in speeds.split(",")
        for stripe in stripes.split(",")
    ]


def _case_words(text: str) -> Said:
    words: Said = {}
    for part in text.split(","):
        key, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals or key not in KEYS or not word or key in words:
            raise UsageError(f"--case {text!r}: write KEY=VALUE, each key once, with keys {', '.join(KEYS)}")
        words[key] = (word, "option --case")
    return words


def _case(said: Said, reference: ReferenceSystem, raid_block: int | None) -> CaseInputs:
    from iolens.plans.endurance import CaseInputs

    stripe = stripe_of(said)
    return CaseInputs(
        ssi=_input("ssi", *said["ssi"]),
        fswpd=_measured("fswpd", said, reference),
        layout=stripe,
        waf=_measured("waf", said, reference),
        rmw=_read_modify_write(said, stripe, reference, raid_block),
    )


def stripe_of(said: Said) -> StripeLayout:
    """Data and parity of a case, or of the options."""
    from iolens.plans.layouts import layout, parse_layout

    known = [key for key in ("data", "parity") if key in said]
    if len(known) == 1:
        raise UsageError(f"--case has {known[0]} alone: data and parity belong together")
    if known:
        return layout(*(_whole(said[key][0], key) for key in known))
    if "," in said["layout"][0]:
        raise UsageError("a --case without data and parity takes them from --layout, which must then be a single one")
    return parse_layout(said["layout"][0])


def _measured(name: str, said: Said, reference: ReferenceSystem) -> Input:
    """A number or range as given, or a statistic of what the store knows."""
    from iolens.plans.samples import statistic

    word, origin = said.get(name, (FROM_STORE[name], "default"))
    if not word[:1].isalpha():
        return _input(name, word, origin)
    if name == "fswpd":
        writes = reference.writes()
        assert writes.daily is not None
        words = f"{writes.origin}; capacity: {writes.capacity_origin}"
        return statistic(name, word, writes.daily.tolist(), words)
    drives = reference.drives()
    return statistic(name, word, drives.wafs, drives.origin, drives.host_write_bytes)


def _read_modify_write(said: Said, stripe: StripeLayout, reference: ReferenceSystem, raid_block: int | None) -> Input:
    from iolens.plans.endurance import NO_READ_MODIFY_WRITE

    if "rmw" in said:
        return _input("rmw", *said["rmw"])
    return NO_READ_MODIFY_WRITE if raid_block is None else _estimated_rmw(reference, stripe, raid_block)


def _estimated_rmw(reference: ReferenceSystem, stripe: StripeLayout, raid_block: int) -> Input:
    from iolens.models.read_modify_write import read_modify_write_factor
    from iolens.plans.inputs import between
    from iolens.units import format_bytes

    if raid_block <= 0:
        raise UsageError("--raid-block must be above 0")
    worst = read_modify_write_factor(reference.write_sizes(), stripe.data, stripe.parity, raid_block)
    assert worst is not None
    words = f"every stripe filled … no write merged: {reference.name()}, {stripe} of {format_bytes(raid_block)}"
    return between("rmw", 1.0, max(worst, 1.0), words)


def _new_capacity(given: int | None) -> Input | None:
    from iolens.plans.inputs import value

    if given is None:
        return None
    if given <= 0:
        raise UsageError("--new-capacity must be above 0")
    return value("capacity_bytes", given, "option --new-capacity")


def _ratio(new: Input, reference: ReferenceSystem) -> Input:
    from iolens.plans.inputs import Input

    old = reference.system_capacity()
    low, expected, high = (old.bytes / end for end in (new.high, new.expected, new.low))
    return Input("capacity_ratio", new.kind, low, expected, high, f"{old.origin} ÷ {new.origin}")


def _reference_drive(given: int | None, sizes: tuple[str, ...], reference: ReferenceSystem) -> tuple[float, str] | None:
    if given is not None:
        if given <= 0:
            raise UsageError("--reference-drive must be above 0")
        return float(given), "option --reference-drive"
    if not sizes:
        return None
    drives = reference.drives()
    if drives.median_capacity_bytes is None:
        raise NotKnownError(f"{drives.origin}: the capacity of the drives is not known; give --reference-drive")
    return drives.median_capacity_bytes, f"median capacity, {drives.origin}"


def _provisions(texts: tuple[str, ...]) -> list[Provision]:
    from iolens.plans.endurance import Provision

    pairs = [text.partition("=") for text in texts]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("--usable: write DWPD=SIZE, such as 10=3.2TB,3=4TB")
    return [Provision(_number(rating, "--usable"), _bytes(size, "--usable")) for rating, _, size in pairs]


def _input(name: str, text: str, origin: str) -> Input:
    from iolens.plans.inputs import parse_input

    return parse_input(name, text, lambda word: _number(word, name), origin)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{where}: {text!r} is not a number") from None


def _whole(text: str, where: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"{where}: {text!r} is not a whole number")
    return int(text)


def _bytes(text: str, where: str) -> int:
    try:
        found = parse_capacity(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    if not found:
        raise UsageError(f"{where}: a drive has a size above 0")
    return found
