"""How worn flash drives are: write amplification, drive writes per day, years left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iolens.errors import UsageError
from iolens.question import Option, choice, number, question

if TYPE_CHECKING:
    from iolens.analyses.drives.analysis import Drives
    from iolens.questions.asking import Ask


@question(
    "drives", "How worn flash drives are, and how many years they have left",
    Option(
        "rated_dwpd", "Rated drive writes per day, for the years left by rating", number(0, above=True),
        metavar="DWPD",
    ),
    Option("warranty_years", "Years for which the drives are rated", number(0, above=True), 5, metavar="YEARS"),
    Option(
        "waf_limit", "Drives above it are listed [third quartile + 3 inter-quartile ranges]", number(0, above=True),
        metavar="WAF",
    ),
    Option("group_by", "Look for hot spots by these", choice("model", "host"), "model"),
    examples=(
        "--filesystem burst",
        "-f burst --to 2019-04-02 --rated-dwpd 3 --group-by host --format json",
        "-f burst --figure waf.png --figure wear=wear.svg",
    ),
)  # fmt: skip
def drives(ask: Ask, **options: Any) -> Drives:
    """Write amplification (WAF), drive writes per day (DWPD) and wear of every drive and of all together.

    Lifetime numbers are those of each drive's last reading in the window; if it was read more than once, what it did
    in between is shown too. Drives with a high WAF are listed, and whether low use explains it.
    """
    if ask.scope.targets:
        raise UsageError("drives are no targets: leave --target out")
    return ask.analyse("drives", **options)
