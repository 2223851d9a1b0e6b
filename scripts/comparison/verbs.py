"""Verbs of the command line, found in the tree of commands, and what each is asked, with values of a store.

A verb that prints in formats and needs nothing, or what `ARGUMENTS` gives it, is asked. Others stand in `ACTS`, with
the reason why they are left out; one that is in neither is an error, so that none is forgotten.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Values = Mapping[str, Any]

ACTS: Final[Mapping[str, str]] = {
    "acceptance": "runs fio and IOR",
    "alerts silence": "changes what the server keeps",
    "alerts test": "sends notifications",
    "alerts unsilence": "changes what the server keeps",
    **dict.fromkeys(
        (f"bench {name}" for name in ("cache", "imitate", "ior", "latency", "metadata", "run", "sequential", "stripe")),
        "measures: no two answers are the same",
    ),
    "bench clean": "removes what a study left",
    "calibrate add": "changes the store",
    "calibrate run": "measures",
    "calibrate use": "changes the store",
    "collect": "samples this machine",
    "demo": "makes a store: that of `demo`",
    "export password": "asks for a password",
    "export pcp": "serves PCP",
    "export prometheus": "serves this machine",
    "ingest": "makes a store: those of captures",
    "job begin": "samples this machine",
    "job end": "samples this machine",
    "job push": "sends samples to a hub",
    "job run": "runs a command",
    "serve": "is the family `server`",
    "serve token add": "changes who is let in",
    "serve token revoke": "changes who is let in",
    "simulate darshan": "makes files",
    "simulate lustre": "makes files over time",
    "simulate telemetry": "makes a store",
    "store anonymize": "makes a store, under random names",
    "store compact": "changes the store",
    "store rollup": "changes the store",
    "synthesize telemetry": "makes a store",
}

# Arguments by verb, where it is not asked as it is; the first is asked in all formats. `{name}` is a value of the
# store, {out} a place for files that are read afterwards. What a store has no value for is not asked of it.
ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "alerts check": ("--dry-run --now {end}",),
    "alerts list": ("--now {end}", "--rules"),
    "bench compare": ("{study} {other_study}",),
    "bench show": ("{study}",),
    "blame": ("", "--by user", "--by project", "--by executable", "--by node", "--metadata", "--busiest 1h"),
    "calibrate fit": ("",),
    "calibrate show": ("", "--filesystem {filesystem}"),
    "completion": ("bash", "fish", "zsh"),
    "contents": ("", "--owner {user}", "--project {project}"),
    "explain": ("{run_job}", "{job}", "{other_job}"),
    "findings explain": ("{rule}",),
    "job applications": ("", "--by cores"),
    "job compare": ("--jobs {listed_job} --against {other_listed_job}", "--after {middle}"),
    "job list": ("", "--user {user}", "--sort read"),
    "job report": ("{job}", "{run_job}", "{other_job}", "--nodes {node} --from {start} --to {end}"),
    "job search": ("", "{job}", "--user {user}", "--sort bytes --reverse --top 5 --skip 2"),
    "lost": ("", "--user {run_user}", "--top 3"),
    "man": ("{out}",),
    "plan capacity": ("--daily-growth 133TB", "", "--ssi 3,4 --purge-days 14,84"),
    "plan endurance": ("", "--waf 2", "--waf 2 --ssi 3"),
    "plan metadata": ("--capacity 30PB", "--capacity 1PB --smaller"),
    "plan performance": ("", "--ssi 2 --percentile 95,99"),
    "plan rationale": (
        "--output {out}.md --ssi 3", "--output {out}.html --waf 2", "--output {out}.json", "--output {out}.pdf",
    ),
    "report": (
        "--output {out}.html", "--output {out}.html --full", "--output {out}.html --job {job}",
        "--output {out}.html --job {run_job} --names", "--output {out}.html --user {user}",
    ),
    "runs advise": ("{run_job}", "--user {run_user} --rank severity", "--filesystem {filesystem}"),
    "runs compare": ("{run} {other_run}",),
    "runs projects": ("", "--min-processes 1"),
    "runs scaling": ("--project {run_project}", "--user {run_user}"),
    "runs summary": ("{run}", "{run_job} --all", "{run} --html {out}.html"),
    "runs timeline": ("{run}", "{run} --dxt"),
    "scan": ("{tree} --no-store --at 2030-01-01 --filesystem here",),
    "store export": ("target_io --output {out}.csv", "jobs --output {out}.parquet", "runs --output {out}.csv"),
    "store repair": ("--dry-run",),
    "store retain": ("--raw 1d --dry-run", "--raw 1d --without-rollup --dry-run"),
    "store undo": ("{batch} --dry-run",),
    "store vacuum": ("--dry-run",),
    "store verify": ("",),
    "synthesize acceptance": ("--output {out} --max-size 64MiB",),
    "synthesize fio": ("--output {out} --max-size 64MiB",),
    "synthesize ior": ("--output {out} --max-size 64MiB",),
    "synthesize model": ("",),
    "top": ("--once --at {end}", "--once --at {middle}", "--once"),
    "utilization": ("", "--peak 35GB/s", "--calibration ours", "--compare {other_filesystem}"),
    "workload": ("", "--bootstrap 50"),
}  # fmt: skip

# The same of verbs that need no store, and of others about files.
WITHOUT_STORE: Final[Mapping[str, tuple[str, ...]]] = {
    "bench compare": ("{ior} {ior}",),
    "bench show": ("{ior}", "{mdtest}", "{fio}"),
    "calibrate fit": ("{fio} --queue-depth 4", "{ior} --queue-depth 4"),
    "config show": ("",),
    "doctor": ("--root {tree} --spool {tree}",),
    "plan capacity": ("--daily-growth 133TB --ssi 3 --purge-days 14,84",),
    "plan endurance": ("--case ssi=3,data=10,parity=2,waf=2.68,fswpd=0.0204",),
    "plan performance": ("--ssi 3 --demand bytes_per_s=35GB/s",),
    "plan rationale": ("--daily-growth 133TB --ssi 3 --parts capacity",),
    "runs advise": ("{log}",),
    "runs summary": ("{log}", "{other_log}"),
    "runs timeline": ("{log}", "{other_log} --dxt"),
    "synthesize model": ("--model spider",),
    "validate": ("--data {captures}",),
}

# Asked besides of every verb that has the option, as JSON.
COMMON: Final = (
    "--from {middle}", "--to {middle} --timezone America/New_York", "--during {day}", "--resolution 1h",
    "--target {target}",
)  # fmt: skip
OF_THE_CENTRE: Final = ("alerts", "explain", "job search", "lost", "report", "runs")  # rather than of a file system
FILLED: Final = re.compile(r"\{(\w+)\}")


class UnknownVerbError(Exception):
    """A verb that nobody has said anything about."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A command that is no group: its words, its options as they are written, and the choices of `--format`."""

    name: str
    options: frozenset[str]
    formats: tuple[str, ...]
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerbQuestion:
    """A command as it is asked; a main one is asked in all formats."""

    verb: Verb
    arguments: tuple[str, ...]
    is_main: bool

    @property
    def command(self) -> str:
        """As it is written in a shell."""
        return shlex.join((*self.verb.name.split(), *self.arguments))


def commands(group: Any, context: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of a tree of click's, groups too, with its words."""
    yield words, group
    for name in group.list_commands(context) if hasattr(group, "list_commands") else ():
        command = group.get_command(context, name)
        yield from commands(command, type(context)(command, parent=context, info_name=name), (*words, name))


def verb_of(words: Sequence[str], command: Any) -> Verb:
    """What is known of a command by its parameters."""
    options = {text for parameter in command.params for text in parameter.opts if text.startswith("-")}
    needs = [parameter.opts[-1] for parameter in command.params if parameter.required]
    formats = [parameter.type.choices for parameter in command.params if "--format" in parameter.opts]
    return Verb(" ".join(words), frozenset(options), tuple(formats[0]) if formats else (), tuple(needs))


def verbs_of(group: Any, context: Any) -> list[Verb]:
    """All verbs of the command line: a group is one only where it does something itself."""
    every = [(words, command) for words, command in commands(group, context) if words]
    return [
        verb_of(words, command)
        for words, command in every
        if not hasattr(command, "list_commands") or command.invoke_without_command
    ]


def check_known(verbs: Sequence[Verb]) -> None:
    """Refuse verbs that are neither asked nor left out by name."""
    unknown = [verb.name for verb in verbs if verb.name not in ACTS and not templates(verb, has_store=True)]
    unknown = [name for name in unknown if name not in WITHOUT_STORE]
    if unknown:
        raise UnknownVerbError(f"neither asked nor left out in {__name__}: {', '.join(unknown)}")


def templates(verb: Verb, *, has_store: bool) -> tuple[str, ...]:
    """What a verb is asked with; of a verb that has no formats, or needs something, only what is written above."""
    if verb.name in ACTS:
        return ()
    if not has_store:
        usual = ARGUMENTS.get(verb.name, ()) if "--store" not in verb.options else ()
        return WITHOUT_STORE.get(verb.name) or usual or (() if "--store" in verb.options else _as_it_is(verb))
    return ARGUMENTS.get(verb.name) or _as_it_is(verb)


def _as_it_is(verb: Verb) -> tuple[str, ...]:
    return ("",) if verb.formats and not verb.needs else ()


def questions_of(verb: Verb, values: Values, *, brief: bool) -> Iterator[VerbQuestion]:
    """What a store is asked, as a whole and of each of its file systems where the verb takes one.

    The variants are asked of one of these only, and of a `brief` store not those that verbs have in common.
    """
    store = tuple(shlex.split("--store store")) if "--store" in verb.options and values["has_store"] else ()
    if values["has_store"] and not store:
        return  # asked once, without a store
    known = templates(verb, has_store=values["has_store"])
    more = [text for text in COMMON if values["has_store"] and verb.options.issuperset(text.split()[::2])]
    filesystems = values["filesystem"] if "--filesystem" in verb.options and values["has_store"] else ()
    first = "" if verb.name.startswith(OF_THE_CENTRE) or not filesystems else filesystems[0]
    for place in ("", *filesystems):
        given = ("--filesystem", place) if place else ()
        variants = (*known, *(() if brief or not known else _joined(known[0], more)))
        for number, template in enumerate(variants if place == first else variants[:1]):
            for filled in _filled(template, values):
                own = () if "--filesystem" in filled else given
                if own or not given:  # else it was asked of the whole store
                    yield VerbQuestion(verb, (*filled, *store, *own), number == 0 and place == first)


def _joined(first: str, more: Sequence[str]) -> list[str]:
    """What is common after the verb's own first arguments, unless they say the same."""
    return [f"{first} {text}".strip() for text in more if text.split()[0] not in first]


def _filled(template: str, values: Values) -> Iterator[tuple[str, ...]]:
    """The words with the values of a store: once for each rule, none where there is no value."""
    names = [name for name in FILLED.findall(template) if name != "out"]
    if not all(values.get(name) for name in names):
        return
    if "rule" in names:
        yield from (tuple(shlex.split(template.format(rule=rule))) for rule in values["rule"])
        return
    chosen = {name: values[name][0] if isinstance(values[name], list) else values[name] for name in names}
    yield tuple(word.format(out="{out}", **chosen) for word in shlex.split(template))
