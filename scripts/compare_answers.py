"""Whether the code of today answers as an earlier revision did: every question, on every store, in every form.

    python scripts/compare_answers.py fabd3b5                     everything
    python scripts/compare_answers.py fabd3b5 --store demo        one store; repeatable
    python scripts/compare_answers.py fabd3b5 --only latency      questions with this word; repeatable
    python scripts/compare_answers.py fabd3b5 --family server     help, verbs, figures, reports or server; repeatable
    python scripts/compare_answers.py --list                      stores, verbs, and what is left out and why

Both revisions are asked in a process of their own about copies of one store, which the earlier one makes: this also
shows that today's code reads it. Captures are those of $IOLENS_SHARED/data, else ../shared/data. An answer is `equal`,
a `same error`, other in `last digits` (of sums whose order threads decide), has `new keys`, or `differs`. Changes that
are meant stand in meant_changes.toml, with their reason. The exit code is 1 if anything else differs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from comparison import verbs, verdicts
from comparison.driver import FAMILIES
from comparison.sides import DriverError, asked_of_both
from comparison.stores import NONE, REPOSITORY, StoreAsked, all_stores, made_store
from comparison.verdicts import MeantChange, Verdict, meant_changes, rules_of, verdicts_of

MEANT = REPOSITORY / "scripts" / "meant_changes.toml"
SLOWEST = 3  # answers that are named
UNTOLD = (verdicts.EQUAL, verdicts.SAME_ERROR)


@dataclass
class Tally:
    """Verdicts by family, and how often each meant change was seen."""

    meant: Sequence[MeantChange]
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, store: str, name: str, verdict: Verdict) -> Verdict:
        """Count a verdict; what it is after a look at what is meant."""
        full = f"{store}/{name}"
        if verdict.kind in verdicts.BAD and (change := next((item for item in self.meant if item.covers(full)), None)):
            self.seen[change.names] += 1
            verdict = Verdict(verdicts.MEANT, f"{change.reason} ({verdict.words})")
        self.counts.setdefault(name.partition("/")[0], Counter())[verdict.kind] += 1
        return verdict

    @property
    def bad(self) -> int:
        """Differences that nobody explained."""
        return sum(counts[kind] for counts in self.counts.values() for kind in verdicts.BAD)

    def lines(self) -> list[str]:
        """The summary."""
        lines = [
            f"{family:8} {sum(counts.values()):6,} answers: {counted(counts)}" for family, counts in self.counts.items()
        ]
        for change in self.meant:
            count = self.seen[change.names]
            lines.append(f"meant    {count or 'NO':>6} answers: {change.names}: {change.reason}")
        return lines


def counted(counts: Counter[str]) -> str:
    """`3,012 equal, 2 differs`, the most frequent first."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())


def unpacked(revision: str, folder: Path) -> Path:
    """The package and the tests of a revision, below a folder; where its package is."""
    if not folder.exists():
        packed = subprocess.run(["git", "archive", revision, "src", "tests"], cwd=REPOSITORY, stdout=-1, check=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
    return folder / "src"


def key_of(revision: str, source: Path) -> str:
    """A name for a comparison of exactly these two packages."""
    commit = subprocess.run(["git", "rev-parse", revision], cwd=REPOSITORY, stdout=-1, check=True, text=True).stdout
    content = hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        content.update(f"{path.relative_to(source)}\n".encode() + path.read_bytes())
    return f"{commit[:12]}-{content.hexdigest()[:12]}"


def compare_store(
    store: StoreAsked, sources: Sequence[Path], folder: Path, options: argparse.Namespace, tally: Tally
) -> None:
    """Make a store, ask both about copies of it, print what differs and count everything."""
    start = time.monotonic()
    made = folder / "made" / store.name
    try:
        values = made_store(store.name, sources[0], made, options.making)
    except DriverError as error:
        print(f"{store.name}: no store: {str(error).strip()[-200:]}", flush=True)
        if not store.brief:  # else the captures are of nothing that a store holds
            tally.add(store.name, "verbs/all", Verdict(verdicts.UNANSWERED))
        return
    places = [folder / side / store.name for side in ("old", "new")]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made, place)
    request = {
        "values": values, "brief": store.brief, "help": store.name == NONE, "only": options.only,
        "families": options.family or list(FAMILIES), "seconds": options.seconds,
    }  # fmt: skip
    asking = time.monotonic()

    def progress(counts: str) -> None:
        print(f"{store.name}: {counts} answers after {time.monotonic() - asking:.0f} s", file=sys.stderr, flush=True)

    try:
        old, new = asked_of_both(sources, places, request, progress)
    except DriverError as error:
        print(f"{store.name}: no answers: {error}", flush=True)
        tally.add(store.name, "verbs/all", Verdict(verdicts.UNANSWERED))
        return
    kinds = Counter[str]()
    rules = rules_of(datetime.fromisoformat(values["began"]), datetime.now(UTC))
    for name, item in verdicts_of(old.known, new.known, rules):
        verdict = tally.add(store.name, name, item)
        kinds[verdict.kind] += 1
        if options.all or verdict.kind not in UNTOLD:
            print(f"{store.name}/{name}: {verdict.words}", flush=True)
    print(f"{store.name}: {counted(kinds) or 'nothing asked'}; made in {asking - start:.0f} s, "
          f"asked in {time.monotonic() - asking:.0f} s", flush=True)  # fmt: skip
    slowest = sorted(new.seconds.items(), key=lambda item: -item[1])[:SLOWEST]
    print(f"{store.name}: slowest: {'; '.join(f'{name} {seconds:.1f} s' for name, seconds in slowest)}", flush=True)
    for place in (made, *places) if options.keep is None else ():
        shutil.rmtree(place, ignore_errors=True)


def listed() -> int:
    """Print what would be asked."""
    import click
    from comparison.product import command_line

    print("stores:", ", ".join(store.name for store in all_stores()))
    print("families:", ", ".join(FAMILIES))
    root = command_line()
    for verb in verbs.verbs_of(root, click.Context(root, info_name="iolens")):
        words = verbs.ACTS.get(verb.name)
        known = [*verbs.templates(verb, has_store=True), *verbs.WITHOUT_STORE.get(verb.name, ())]
        asked = "; ".join(text or "as it is" for text in known) or "NOT KNOWN"
        print(f"  {verb.name:22} {f'left out: {words}' if words else asked}")
    return 0


def main() -> int:
    """Compare; 1 when an answer differs and nobody meant it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", nargs="?", help="the earlier one, as git names it")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="questions with this word")
    parser.add_argument("--family", action="append", default=[], choices=FAMILIES, help="only these")
    parser.add_argument("--store", action="append", default=[], metavar="NAME", help="only these")
    parser.add_argument("--all", action="store_true", help="a line for every answer, also for what is equal")
    parser.add_argument("--list", action="store_true", help="what is asked, and what is left out")
    parser.add_argument("--source", type=Path, default=REPOSITORY / "src", help="this revision's package [src]")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep stores and answers here, and go on with them")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one answer [%(default)g]")
    parser.add_argument("--making", type=float, default=900.0, help="for a store [%(default)g]")
    options = parser.parse_args()
    if options.list:
        return listed()
    if options.revision is None:
        parser.error("which revision?")
    tally, began = Tally(meant_changes(MEANT)), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="iolens-compare-") as name:
        folder = (options.keep or Path(name)).resolve() / key_of(options.revision, options.source)
        sources = [unpacked(options.revision, folder / "revision"), options.source.resolve()]
        for store in all_stores():
            if not options.store or store.name in options.store:
                compare_store(store, sources, folder, options, tally)
    print(*tally.lines(), f"{time.monotonic() - began:.0f} s", sep="\n")
    return 1 if tally.bad else 0


if __name__ == "__main__":
    sys.exit(main())
