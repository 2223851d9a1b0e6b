"""The design rationale: the four plans as far as their inputs are known, in one document with their origins."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from iolens import __version__
from iolens.api.plans.capacity import capacity_plan, given_growth, given_what_ifs
from iolens.api.plans.endurance import common_words, endurance_plan
from iolens.api.plans.making import PlanOptions
from iolens.api.plans.metadata import given_capacity, reference_sizes
from iolens.api.plans.performance import given_demands, performance_plan
from iolens.api.plans.reference_system import ReferenceSystem
from iolens.errors import NotKnownError, StoreError, UsageError
from iolens.models.dom import METHODS
from iolens.plans.capacity import capacity_inputs, plan_capacity
from iolens.plans.cases import Input, rate_or_number, value
from iolens.plans.endurance import CaseWords, cases_of, stripe_of
from iolens.plans.metadata import dom_thresholds, parse_layout, plan_metadata, prices_of
from iolens.plans.performance import percentiles
from iolens.plans.plausibility import PARTS
from iolens.plans.rationale import NEEDED, DocumentInfo, Missing, Rationale, design_capacity, make_rationale
from iolens.plans.specification import Stripe

if TYPE_CHECKING:
    from iolens.plans.capacity import CapacityPlan
    from iolens.plans.cases import CapacityCase
    from iolens.plans.endurance import EndurancePlan
    from iolens.plans.metadata import MetadataPlan
    from iolens.plans.performance import PerformancePlan
    from iolens.plans.plausibility import Part


AnyPlan = TypeVar("AnyPlan")

PUBLISHED: Final = ("purge_days", "purge_fraction", "layout", "layout_mdt")  # defaults that are those of the study
HALF_AND_TWICE: Final = (0.5, 1.0, 2.0)  # of the purge days, where nobody asks what if
_PASSWORD: Final = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*@")


def make(options: PlanOptions, reference_of: Callable[..., ReferenceSystem]) -> Rationale:
    """The design that the options ask for."""
    inputs = _RationaleInputs(options)
    reference = reference_of(
        capacity=options["reference_capacity"],
        min_coverage=options["min_coverage"],
        drives_of=options["drives_of"],
        capacity_option="--reference-capacity",
    )
    answers = _Answers(inputs, reference)
    plans = answers.all()
    return make_rationale(
        _about(options, plans, reference),
        **plans,
        what_if=answers.what_if,
        missing=answers.missing,
        stripes=inputs.stripes,
        mdt_stripe=inputs.mdt_stripe,
    )


def _about(options: PlanOptions, plans: Mapping[str, Any], reference: ReferenceSystem) -> DocumentInfo:
    name = next((plan.filesystem for plan in plans.values() if plan is not None and plan.filesystem), None)
    return DocumentInfo(
        title=options["title"] or ("Design rationale" + (f": the successor of {name}" if name else "")),
        author=options["author"],
        made=_made(),
        version=__version__,
        command=masked(reference.command),
        store=None if reference.url is None else masked(reference.url),
    )


class _RationaleInputs:
    """What was asked, read before any data is: what is wrong with it is said at once."""

    def __init__(self, options: PlanOptions) -> None:
        self.options = options
        self.parts = _parts(options.words("parts"))
        common = common_words(options)
        common.setdefault("ssi", ("1", "default"))
        self.cases = cases_of(options.cases("cases"), common)
        self.speeds = self._speeds()
        self.stripes = [self._stripe(case) for case in self.cases]
        self.mdt_stripe = Stripe(None, parse_layout(options["layout_mdt"]), _origin(options, "layout_mdt"))
        self.capacity = self._capacity_inputs()
        self.what_if = given_what_ifs(options)
        self.new_capacity = given_capacity(options)
        self.thresholds = dom_thresholds(options.words("dom"))
        self.demands = given_demands(options)
        self.percentiles = percentiles(options.words("percentile"))
        largest = max(self.stripes, key=lambda stripe: stripe.ssi or 0.0)  # the case that the capacity is that of
        prices = options["cost_mdt"], options["cost_ost"]
        self.prices = prices_of(*prices, options["layout_mdt"], str(largest.layout))

    def _speeds(self) -> list[Input]:
        """Those of --ssi; else those of the cases, each once."""
        given = self.options.text("ssi")
        words = given.split(",") if given is not None else [case["ssi"][0] for case in self.cases]
        option = "--ssi" if given is not None else "--case"
        speeds = [rate_or_number("ssi", word, option) for word in dict.fromkeys(words)]
        if given is not None or self.options["cases"]:
            return speeds
        return [replace(speed, origin="default") for speed in speeds]

    def _stripe(self, case: CaseWords) -> Stripe:
        origin = case["data"][1] if "data" in case else _origin(self.options, "layout")
        return Stripe(rate_or_number("ssi", case["ssi"][0], "--ssi").expected, stripe_of(case), origin)

    def _capacity_inputs(self) -> dict[str, list[Input]]:
        options = self.options
        purges = {
            name: capacity_inputs(name, options.required_text(name), _origin(options, name))
            for name in ("purge_days", "purge_fraction")
        }
        return {"ssi": self.speeds, **purges, **given_growth(options)}


class _Answers:
    """The plans, as far as their inputs are known."""

    def __init__(self, inputs: _RationaleInputs, reference: ReferenceSystem) -> None:
        self.inputs = inputs
        self.options = inputs.options
        self.reference = reference
        self.missing: list[Missing] = []
        self.what_if: list[CapacityCase] = []
        self.failures: list[Exception] = []

    def all(self) -> dict[str, Any]:
        """Each part asked for, or None; the first failure where there is no part at all."""
        capacity = self._attempt("capacity", self._capacity)
        plans = {
            "capacity": capacity,
            "endurance": self._attempt("endurance", lambda: self._endurance(capacity)),
            "metadata": self._attempt("metadata", lambda: self._metadata(capacity)),
            "performance": self._attempt("performance", self._performance),
        }
        if self.failures and all(plan is None for plan in plans.values()):
            raise self.failures[0]
        return plans

    def _attempt(self, part: Part, answer: Callable[[], AnyPlan]) -> AnyPlan | None:
        """None where it is not wanted, or its inputs are not known: that is noted."""
        if part not in self.inputs.parts:
            return None
        try:
            return answer()
        except NotKnownError as error:
            self.failures.append(error)
        except StoreError as error:
            if self.reference.is_named:
                raise
            self.failures.append(error)
        self.missing.append(Missing(part, masked(str(self.failures[-1])), NEEDED[part]))
        return None

    def _capacity(self) -> CapacityPlan:
        inputs = self.inputs.capacity
        plan = capacity_plan(inputs, self.reference, self.options)
        grid = {**inputs, **(self.inputs.what_if or _half_and_twice(inputs))}
        self.what_if = plan_capacity(grid, growth=plan.growth).cases
        return plan

    def _endurance(self, capacity: CapacityPlan | None) -> EndurancePlan:
        new_capacity = self._new_capacity(capacity)
        return endurance_plan(self.inputs.cases, self.reference, self.options, new_capacity, must_compare=False)

    def _new_capacity(self, capacity: CapacityPlan | None) -> Input | None:
        given = self.inputs.new_capacity
        return None if given is None and capacity is None else design_capacity(given, capacity)

    def _metadata(self, capacity: CapacityPlan | None) -> MetadataPlan:
        return plan_metadata(
            reference_sizes(self.options, self.reference),
            design_capacity(self.inputs.new_capacity, capacity),
            self.inputs.thresholds,
            methods=[METHODS[self.options["method"] == "paper"]],
            inode_bytes=self.options["inode_size"],
            prices=self.inputs.prices,
            usage=self.reference.usage(),
        )

    def _performance(self) -> PerformancePlan:
        inputs = self.inputs
        return performance_plan(inputs.speeds, inputs.demands, inputs.percentiles, self.reference)


def _parts(words: Sequence[str]) -> tuple[str, ...]:
    wrong = [word for word in words if word not in PARTS]
    if wrong or not words:
        raise UsageError(f"--parts: {wrong[0] if wrong else ''!r} is no plan; there are {', '.join(PARTS)}")
    return tuple(words)


def _origin(options: PlanOptions, name: str) -> str:
    if name in options.given or name not in PUBLISHED:
        return options.origin(name)
    return "default, as in the published study"


def _half_and_twice(inputs: Mapping[str, list[Input]]) -> dict[str, list[Input]]:
    """The purge days halved, as they are and doubled; a list of several is a grid already."""
    days = inputs["purge_days"]
    if len(days) > 1 or days[0].kind != "value":
        return {}
    return {"purge_days": [value("purge_days", factor * days[0].expected, "what if") for factor in HALF_AND_TWICE]}


def _made() -> datetime:
    """Now, or the time that whoever builds reproducibly says it is."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "").strip()
    if not text:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"SOURCE_DATE_EPOCH is {text!r}; it must be seconds since 1970") from None


def masked(text: str) -> str:
    """The text without passwords of addresses."""
    return _PASSWORD.sub(r"\1:***@", text)


# A design rationale as a document -------------------------------------------------------------------------------------
# Markdown, HTML, PDF or JSON, by the suffix of the file.

SUFFIXES: Final = (".md", ".html", ".pdf", ".json")


def check_suffix(path: Path) -> None:
    """Refuse a kind of file that the rationale is not written as."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: write the rationale to a file that ends in {', '.join(SUFFIXES)}")


def rationale_markdown(result: Rationale) -> str:
    """The document as one text, without figures."""
    from iolens.views.plan_rationale.chapters import document
    from iolens.views.plan_rationale.document import to_markdown

    return to_markdown(document(result))


def write_rationale(result: Rationale, path: str | Path) -> list[Path]:
    """Write the document in the form that the suffix names; the files written, figures of Markdown among them."""
    from iolens.views.plan_rationale.chapters import document
    from iolens.views.render import atomic, json_text

    output = Path(path)
    check_suffix(output)
    suffix = output.suffix.lower()
    if suffix == ".json":
        atomic.write(output, json_text.to_json(result))
    elif suffix == ".html":
        from iolens.views.plan_rationale.document import to_html

        atomic.write(output, to_html(document(result)))
    elif suffix == ".pdf":
        from iolens.views.plan_rationale.pdf import to_pdf

        atomic.write(output, to_pdf(document(result), result.about.made))
    else:
        from iolens.views.plan_rationale.document import write

        return write(document(result), output)
    return [output]
