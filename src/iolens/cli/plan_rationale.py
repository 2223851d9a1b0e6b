"""The whole design on a few pages, every number with its origin, equation and uncertainty."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from iolens.cli.options import BYTES, CAPACITY, TIME, WORDS, Selected, selection_options
from iolens.cli.plan_capacity import capacity_plan, inputs_of, what_ifs
from iolens.cli.plan_endurance import Said, cases_of, endurance_plan, said_of, stripe_of
from iolens.cli.plan_metadata import prices_of, reference_sizes, thresholds_of
from iolens.cli.plan_performance import demand_of, input_of, percentiles_of, performance_plan
from iolens.cli.reference_system import ReferenceSystem
from iolens.errors import NotKnownError, StoreError, UsageError
from iolens.units import parse_capacity

if TYPE_CHECKING:
    from iolens.plans.capacity import CapacityPlan
    from iolens.plans.cases import CapacityCase
    from iolens.plans.endurance import EndurancePlan
    from iolens.plans.inputs import Input
    from iolens.plans.metadata import MetadataPlan
    from iolens.plans.performance import PerformancePlan
    from iolens.plans.plausibility import Part
    from iolens.plans.rationale import Missing, Rationale
    from iolens.plans.specification import Stripe

Plan = TypeVar("Plan")

PARTLY_DONE: Final = 3
SUFFIXES: Final = (".md", ".html", ".pdf", ".json")
PUBLISHED: Final = ("purge_days", "purge_fraction", "layout", "layout_mdt")  # defaults that are those of the study
HALF_AND_TWICE: Final = (0.5, 1.0, 2.0)  # of the purge days, where nobody asks what if
_PASSWORD: Final = re.compile(r"(?<=://)([^/@\s:]*):[^/@\s]*@")


@click.command(
    "rationale",
    epilog="""\b
Examples:
  iolens plan rationale --store centre -f scratch --ssi 3,4 -o plan.pdf --author "Storage group"
  iolens plan rationale -f scratch --case ssi=3,data=10,parity=2,waf=2.68 --file-sizes sizes.csv -o plan.html
  iolens plan rationale --daily-growth 133TB --ssi 3 --parts capacity
""",
)
@click.option("--title", metavar="TEXT", help="Title of the document")
@click.option("--author", metavar="TEXT", help="Who answers for it")
@click.option("--parts", type=WORDS, default="capacity,endurance,metadata,performance", show_default=True,
              metavar="LIST", help="Plans that belong to the design")  # fmt: skip
@click.option("--ssi", metavar="LIST", help="Speed of the new system over the old [those of --case, else 1]")
@click.option("--method", type=click.Choice(["strict", "paper"]), default="strict", show_default=True,
              help="Growth and bands of sizes our way, or as published")  # fmt: skip
@click.option("--capacity", metavar="SIZE", help="Capacity of the new system [the largest that growth asks for]")
@click.option("--reference-capacity", type=CAPACITY, metavar="SIZE", help="Of the reference system [from the store]")
@click.option("--purge-days", default="28", show_default=True, metavar="LIST", help="Days after which files may go")
@click.option(
    "--purge-fraction", default="0.5", show_default=True, metavar="LIST", help="Share of capacity a purge reclaims"
)
@click.option("--daily-growth", metavar="SIZE", help="Bytes gained per day, such as 133TB [from the store]")
@click.option("--cutoff", type=TIME, metavar="DATE", help="Leave out growth before this day")
@click.option("--purge-every", type=click.IntRange(1), metavar="DAYS", help="Days between purges [as --purge-days]")
@click.option("--clock", type=click.Choice(["atime", "mtime"]), default="atime", show_default=True,
              help="Age that purges go by, where the store holds a scan")  # fmt: skip
@click.option("--what-if", multiple=True, metavar="NAME=LIST",
              help="Grid over ssi, purge-days, purge-fraction or daily-growth; repeatable [half and twice the purge "
              "days]")  # fmt: skip
@click.option("--case", "cases", multiple=True, metavar="KEY=VALUE,...",
              help="One case of endurance: ssi, data, parity, waf, fswpd, rmw; repeatable")  # fmt: skip
@click.option("--layout", default="8+2", show_default=True, metavar="LIST", help="Data and parity blocks of a stripe")
@click.option("--waf", metavar="VALUE", help="Number, range, or median, p95, max, mean, fleet of the drives [median]")
@click.option("--fswpd", metavar="VALUE", help="Number, range, or mean, median, p95, max of the days [mean]")
@click.option("--rmw", metavar="VALUE", help="Read-modify-write factor, where it is known")
@click.option("--raid-block", type=BYTES, metavar="SIZE", help="Estimate it from the store's write sizes")
@click.option("--min-coverage", type=click.FloatRange(0, 100), default=95, show_default=True, metavar="PCT",
              help="Leave out days with less of them reported")  # fmt: skip
@click.option("--drives-of", metavar="NAME", help="File system whose drives tell the WAF [the same, or the only one]")
@click.option("--classes", default="0.3,1,3,10", show_default=True, type=WORDS, metavar="LIST", help="DWPD on offer")
@click.option("--warranty", type=click.FloatRange(0, min_open=True), default=5, show_default=True, metavar="YEARS")
@click.option("--reference-drive", type=CAPACITY, metavar="SIZE", help="Drive that the cases speak of [from the store]")
@click.option("--drive-sizes", type=WORDS, default="", metavar="SIZES", help="Other drives, at equal number of drives")
@click.option("--usable", type=WORDS, default="", metavar="DWPD=SIZE,...", help="What one drive offers at each rating")
@click.option("--file-sizes", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Histogram of sizes, or a listing of files [the newest scan in the store]")  # fmt: skip
@click.option("--dom", type=WORDS, default="64KiB,1MiB", show_default=True, metavar="SIZES", help="DOM thresholds")
@click.option("--inode-size", type=BYTES, default="4KiB", show_default=True, metavar="SIZE", help="Room of an inode")
@click.option("--largest-file", type=BYTES, metavar="SIZE", help="Largest file, where the last bin has no upper end")
@click.option("--layout-mdt", default="5+5", show_default=True, metavar="D+P", help="Data and parity blocks of MDTs")
@click.option("--cost-mdt", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on MDTs")
@click.option("--cost-ost", type=click.FloatRange(0), metavar="MONEY", help="Cost of a raw TB on OSTs")
@click.option("--percentile", type=WORDS, default="95,99,100", show_default=True, metavar="LIST",
              help="50, 95, 99, 100 of ticks")  # fmt: skip
@click.option("--demand", "demands", multiple=True, metavar="MEASURE=VALUE", help="Demand as known elsewhere, such as "
              "bytes_per_s=35GB/s or ops_per_s=2e6; repeatable")  # fmt: skip
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write here, by the suffix as .md, .html, .pdf or .json [Markdown to standard output]")  # fmt: skip
@selection_options
def COMMAND(asked: Selected, output: Path | None, **options: Any) -> int:
    """Write the design of the next system down: what to specify, and why.

    A summary of what to specify comes first, then capacity, endurance, metadata and performance, each with its
    equation and the values put in, its inputs with their origins, its range and interval, figures and what-ifs; then
    the data behind it, the assumptions, and the command that makes it again. Inputs come from the store or from
    options, as `iolens plan capacity|endurance|metadata|performance` read them. A part whose inputs are not known is
    named as missing, and the exit code is 3. SOURCE_DATE_EPOCH sets the date.
    """
    if output is not None and output.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{output}: write the rationale to a file that ends in {', '.join(SUFFIXES)}")
    result = _rationale(asked, options)
    for path in _written(result, output):
        click.echo(f"written: {path}", err=True)
    for one in result.missing:
        click.echo(f"iolens: {one.part} is not answered: {one.reason}", err=True)
    return PARTLY_DONE if result.missing else 0


def _rationale(asked: Selected, options: dict[str, Any]) -> Rationale:
    from iolens import __version__
    from iolens.plans.rationale import DocumentInfo, make_rationale

    question = _RationaleInputs(options)
    reference = ReferenceSystem.of(
        asked,
        capacity=options["reference_capacity"],
        min_coverage=options["min_coverage"],
        drives_of=options["drives_of"],
        capacity_option="--reference-capacity",
    )
    with reference:
        answers = _Answers(question, reference)
        plans = answers.all()
        url = reference.url
    name = next((plan.filesystem for plan in plans.values() if plan is not None and plan.filesystem), None)
    about = DocumentInfo(
        title=options["title"] or ("Design rationale" + (f": the successor of {name}" if name else "")),
        author=options["author"],
        made=_made(),
        version=__version__,
        command=_masked(shlex.join(["iolens", *sys.argv[1:]])),
        store=None if url is None else _masked(url),
    )
    return make_rationale(
        about,
        **plans,
        what_if=answers.what_if,
        missing=answers.missing,
        stripes=question.stripes,
        mdt_stripe=question.mdt_stripe,
    )


class _RationaleInputs:
    """What was asked, read before any data is: what is wrong with it is said at once."""

    def __init__(self, options: dict[str, Any]) -> None:
        from iolens.plans.inputs import parse_input
        from iolens.plans.layouts import parse_layout
        from iolens.plans.specification import Stripe

        self.options = options
        self.parts = _parts(options["parts"])
        texts = {"ssi": options["ssi"] or "1", **{name: options[name] for name in ("waf", "fswpd", "rmw", "layout")}}
        context = click.get_current_context()
        said = said_of(context, texts)
        self.cases = cases_of(options["cases"], said)
        self.speeds = self._speeds()
        self.stripes = [self._stripe(case) for case in self.cases]
        self.mdt_stripe = Stripe(None, parse_layout(options["layout_mdt"]), _origin(context, "layout_mdt"))
        self.capacity = self._capacity_inputs(context)
        self.what_if = what_ifs(options["what_if"])
        self.new_capacity: Input | None = None
        if options["capacity"] is not None:
            self.new_capacity = parse_input("capacity_bytes", options["capacity"], parse_capacity, "option --capacity")
        self.thresholds = thresholds_of(options["dom"])
        self.demands = [demand_of(text) for text in options["demands"]]
        self.percentiles = percentiles_of(options["percentile"])
        largest = max(self.stripes, key=lambda stripe: stripe.ssi or 0.0)  # the case that the capacity is that of
        prices = options["cost_mdt"], options["cost_ost"]
        self.prices = prices_of(*prices, options["layout_mdt"], str(largest.layout))

    def _speeds(self) -> list[Input]:
        """Those of --ssi; else those of the cases, each once."""
        given = self.options["ssi"]
        words = given.split(",") if given is not None else [case["ssi"][0] for case in self.cases]
        found = [input_of("ssi", word, "--ssi" if given is not None else "--case") for word in dict.fromkeys(words)]
        return found if given is not None or self.options["cases"] else [_as_default(one) for one in found]

    def _stripe(self, case: Said) -> Stripe:
        from iolens.plans.specification import Stripe

        origin = case["data"][1] if "data" in case else _origin(click.get_current_context(), "layout")
        return Stripe(input_of("ssi", case["ssi"][0], "--ssi").expected, stripe_of(case), origin)

    def _capacity_inputs(self, context: click.Context) -> dict[str, list[Input]]:
        found = {"ssi": self.speeds}
        for name in ("purge_days", "purge_fraction"):
            found[name] = inputs_of(name, self.options[name], _origin(context, name))
        if self.options["daily_growth"] is not None:
            found["daily_growth_bytes"] = inputs_of(
                "daily_growth_bytes", self.options["daily_growth"], "option --daily-growth"
            )
        return found


class _Answers:
    """The plans, as far as their inputs are known."""

    def __init__(self, question: _RationaleInputs, reference: ReferenceSystem) -> None:
        self.question = question
        self.options = question.options
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

    def _attempt(self, part: Part, answer: Callable[[], Plan]) -> Plan | None:
        """None where it is not wanted, or its inputs are not known: that is noted."""
        from iolens.plans.rationale import NEEDED, Missing

        if part not in self.question.parts:
            return None
        try:
            return answer()
        except NotKnownError as error:
            self.failures.append(error)
        except StoreError as error:
            if self.reference.is_named:
                raise
            self.failures.append(error)
        self.missing.append(Missing(part, _masked(str(self.failures[-1])), NEEDED[part]))
        return None

    def _capacity(self) -> CapacityPlan:
        from iolens.plans.capacity import plan_capacity

        question, options = self.question, self.options
        plan = capacity_plan(
            question.capacity,
            self.reference,
            method=options["method"],
            cutoff=options["cutoff"],
            purge_every_days=options["purge_every"],
            clock=options["clock"],
        )
        grid = {**question.capacity, **(question.what_if or _half_and_twice(question.capacity))}
        self.what_if = plan_capacity(grid, growth=plan.growth).cases
        return plan

    def _endurance(self, capacity: CapacityPlan | None) -> EndurancePlan:
        options = self.options
        return endurance_plan(
            self.question.cases,
            self.reference,
            raid_block=options["raid_block"],
            new_capacity=self._new_capacity(capacity),
            must_compare=False,
            classes=options["classes"],
            warranty_years=options["warranty"],
            reference_drive=options["reference_drive"],
            drive_sizes=options["drive_sizes"],
            usable=options["usable"],
        )

    def _new_capacity(self, capacity: CapacityPlan | None) -> Input | None:
        from iolens.plans.rationale import design_capacity

        given = self.question.new_capacity
        return None if given is None and capacity is None else design_capacity(given, capacity)

    def _metadata(self, capacity: CapacityPlan | None) -> MetadataPlan:
        from iolens.models.dom import METHODS
        from iolens.plans.metadata import plan_metadata
        from iolens.plans.rationale import design_capacity

        sizes = reference_sizes(self.options["file_sizes"], self.reference, self.options["largest_file"])
        return plan_metadata(
            sizes,
            design_capacity(self.question.new_capacity, capacity),
            self.question.thresholds,
            methods=[METHODS[self.options["method"] == "paper"]],
            inode_bytes=self.options["inode_size"],
            prices=self.question.prices,
            usage=self.reference.usage(),
        )

    def _performance(self) -> PerformancePlan:
        question = self.question
        return performance_plan(question.speeds, question.demands, question.percentiles, self.reference)


def _parts(words: Sequence[str]) -> tuple[str, ...]:
    from iolens.plans.plausibility import PARTS

    wrong = [word for word in words if word not in PARTS]
    if wrong or not words:
        raise UsageError(f"--parts: {wrong[0] if wrong else ''!r} is no plan; there are {', '.join(PARTS)}")
    return tuple(words)


def _origin(context: click.Context, name: str) -> str:
    if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
        return f"option --{name.replace('_', '-')}"
    return "default, as in the published study" if name in PUBLISHED else "default"


def _as_default(one: Input) -> Input:
    from dataclasses import replace

    return replace(one, origin="default")


def _half_and_twice(inputs: Mapping[str, list[Input]]) -> dict[str, list[Input]]:
    """The purge days halved, as they are and doubled; a list of several is a grid already."""
    from iolens.plans.inputs import value

    days = inputs["purge_days"]
    if len(days) > 1 or days[0].kind != "value":
        return {}
    return {"purge_days": [value("purge_days", factor * days[0].expected, "what if") for factor in HALF_AND_TWICE]}


def _made() -> datetime:
    """Now, or the moment that whoever builds reproducibly says it is."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "").strip()
    if not text:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"SOURCE_DATE_EPOCH is {text!r}; it must be seconds since 1970") from None


def _masked(text: str) -> str:
    """The text without passwords of addresses."""
    return _PASSWORD.sub(r"\1:***@", text)


def _written(result: Rationale, output: Path | None) -> list[Path]:
    """The document in the form that the suffix names."""
    from iolens.views.plan_rationale.chapters import document
    from iolens.views.render import atomic, json_text

    if output is None:
        from iolens.views.plan_rationale.markdown import to_markdown

        click.echo(to_markdown(document(result)).encode(), nl=False)  # UTF-8, whatever the terminal's locale
        return []
    suffix = output.suffix.lower()
    if suffix == ".json":
        atomic.write(output, json_text.to_json(result))
    elif suffix == ".html":
        from iolens.views.plan_rationale.html import to_html

        atomic.write(output, to_html(document(result)))
    elif suffix == ".pdf":
        from iolens.views.plan_rationale.pdf import to_pdf

        atomic.write(output, to_pdf(document(result), result.about.made))
    else:
        from iolens.views.plan_rationale.markdown import write

        return write(document(result), output)
    return [output]
