"""The cases of an endurance plan as people write them: `ssi=3,data=10,parity=2`, completed by what holds for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iolens.errors import UsageError
from iolens.plans.endurance import Provision
from iolens.plans.inputs import Input, parse_input
from iolens.plans.layouts import StripeLayout, layout, parse_layout
from iolens.plans.numbers import drive_bytes, number, whole_number

KEYS: Final = ("ssi", "data", "parity", "waf", "fswpd", "rmw")
CaseWords = dict[str, tuple[str, str]]  # for each key what is asked for, and where that comes from


def cases_of(texts: Sequence[str], common: CaseWords) -> list[CaseWords]:
    """What each `--case` says, completed by the options; without one, a case for every speed and stripe."""
    cases = [{**common, **_case_words(text)} for text in texts]
    if any("," in case["ssi"][0] for case in cases):
        raise UsageError("a --case without ssi takes it from --ssi, which must then be a single value or range")
    return cases or _grid(common)


def _grid(common: CaseWords) -> list[CaseWords]:
    """A case for every speed and stripe."""
    (speeds, ssi_origin), (stripes, layout_origin) = common["ssi"], common["layout"]
    return [
        {**common, "ssi": (speed.strip(), ssi_origin), "layout": (stripe, layout_origin)}
        for speed in speeds.split(",")
        for stripe in stripes.split(",")
    ]


def _case_words(text: str) -> CaseWords:
    words: CaseWords = {}
    for part in text.split(","):
        key, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals or key not in KEYS or not word or key in words:
            raise UsageError(f"--case {text!r}: write KEY=VALUE, each key once, with keys {', '.join(KEYS)}")
        words[key] = (word, "option --case")
    return words


def stripe_of(case: CaseWords) -> StripeLayout:
    """Data and parity of a case, or of the options."""
    known = [key for key in ("data", "parity") if key in case]
    if len(known) == 1:
        raise UsageError(f"--case has {known[0]} alone: data and parity belong together")
    if known:
        return layout(*(whole_number(case[key][0], key) for key in known))
    if "," in case["layout"][0]:
        raise UsageError("a --case without data and parity takes them from --layout, which must then be a single one")
    return parse_layout(case["layout"][0])


def plain_input(name: str, text: str, origin: str) -> Input:
    """A number or a range of numbers."""
    return parse_input(name, text, lambda word: number(word, name), origin)


def provisions(texts: Sequence[str]) -> list[Provision]:
    """What one drive offers at each rating, from `DWPD=SIZE`."""
    pairs = [text.partition("=") for text in texts]
    if not all(equals for _, equals, _ in pairs):
        raise UsageError("--usable: write DWPD=SIZE, such as 10=3.2TB,3=4TB")
    return [Provision(number(rating, "--usable"), drive_bytes(size, "--usable")) for rating, _, size in pairs]
