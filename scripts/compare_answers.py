"""Whether the code of today answers as an earlier revision did: the JSON of every analysis and plan, byte for byte.

    python scripts/compare_answers.py fabd3b5                 the demo store and a store of every folder of captures
    python scripts/compare_answers.py fabd3b5 --only lustre   only stores whose name has this word; repeatable

The earlier revision makes the stores, so this also shows that today's code reads them. Captures are those of
$IOLENS_SHARED/data, else ../shared/data. A line per store, file system and verb says `equal`, `same error` (both refuse
in the same words), `last digits` (of sums whose order threads decide), `new keys` or `differs` (exit code 1).
"""

from __future__ import annotations

import argparse
import io
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
CAPTURES = Path(os.environ.get("IOLENS_SHARED", REPOSITORY.parent / "shared")) / "data"
VERBS = (
    "utilization", "imbalance", "latency", "metadata", "capacity", "contents", "drives", "workload",
    "plan capacity", "plan endurance", "plan endurance --waf 2", "plan metadata --capacity 30PB", "plan performance",
)  # fmt: skip
SUPPLIED = ("--filesystem", "scratch", "--timezone", "America/Los_Angeles", "--at", "2024-01-01")
"""What captures may lack."""
CLOSE = 1e-12  # relative: a double has sixteen digits
SHOWN = 3  # differences of one answer
DEMO = "demo"

# Several commands in one process; what each printed, or why it did not.
RUN = """
import contextlib, io, json, sys
from iolens.cli.main import iolens
answers = []
for arguments in json.load(sys.stdin):
    out, error = io.StringIO(), ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            iolens.main(arguments, standalone_mode=False)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
    answers.append([out.getvalue(), error])
json.dump([sys.modules["iolens"].__file__, answers], sys.stdout)
"""


def run(source: Path, commands: list[list[str]], seconds: float) -> list[tuple[str, str]] | None:
    """What the commands print and why they fail, with the package below `source`; None when time is up or it dies."""
    environment = {**os.environ, "PYTHONPATH": str(source), "IOLENS_CONFIG": os.devnull}
    try:
        done = subprocess.run(
            [sys.executable, "-c", RUN], input=json.dumps(commands), env=environment, cwd=source, timeout=seconds,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    package, answers = json.loads(done.stdout)
    if not Path(package).is_relative_to(source):
        raise SystemExit(f"{package} is not below {source}")
    return [(text, error) for text, error in answers]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value of a JSON document, with where it is."""
    if isinstance(value, dict | list) and value:
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def verdict(old: tuple[str, str], new: tuple[str, str]) -> str:
    """What became of one answer."""
    if old == new:
        return "same error" if old[1] else "equal"
    if old[1] or new[1]:
        return f"differs: {old[1] or 'an answer'} → {new[1] or 'an answer'}"
    before, after = dict(leaves(json.loads(old[0]))), dict(leaves(json.loads(new[0])))
    apart = [path for path, value in before.items() if path not in after or after[path] != value]
    rest = [path for path in apart if not (path in after and is_close(before[path], after[path]))]
    if rest:
        changes = [f"{path}: {str(before[path])[:90]} → {str(after.get(path, 'absent'))[:90]}" for path in rest[:SHOWN]]
        return f"differs: {len(rest)} of {len(before)} values; {'; '.join(changes)}"
    added = dict.fromkeys(path.partition(".")[0] for path in after if path not in before)
    changes = [f"last digits: {', '.join(apart[:SHOWN])}"] if apart else []
    changes += [f"new keys: {', '.join(added)}"] if added else []
    return "; ".join(changes) or "differs: order of keys"


def is_close(old: object, new: object) -> bool:
    """Whether two numbers differ in their last digits only."""
    return isinstance(old, float) and isinstance(new, float) and math.isclose(old, new, rel_tol=CLOSE)


def compared(
    name: str, made_by: list[str], store: Path, sources: list[Path], options: argparse.Namespace
) -> Counter[str]:
    """Make a store with the first of the sources, ask both about it, print a line each, and count the verdicts."""
    info = [made_by, ["store", "info", "--store", str(store), "--format", "json"]]
    made = run(sources[0], info, options.seconds)
    if made is None or not made[1][0]:
        print(f"{name:20} no store: {'time is up' if made is None else made[0][1] or made[0][0].strip()[-100:]}")
        return Counter()
    verbs = [verb for verb in VERBS if not options.verb or verb in options.verb]
    asked = [(filesystem, verb) for filesystem in json.loads(made[1][0])["filesystems"] for verb in verbs]
    commands = [
        [*verb.split(), "--store", str(store), "--filesystem", filesystem, "--format", "json"]
        for filesystem, verb in asked
    ]
    old, new = (run(source, commands, options.seconds) for source in sources)
    if old is None or new is None:
        print(f"{name:20} no answers: {'the earlier' if old is None else 'this'} revision took too long or died")
        return Counter({"no answers": len(asked)})
    verdicts: Counter[str] = Counter()
    for (filesystem, verb), before, after in zip(asked, old, new, strict=True):
        result = verdict(before, after)
        verdicts[result.partition(":")[0]] += 1
        print(f"{name:20} {filesystem:16} {verb:29} {result}", flush=True)
    return verdicts


def main() -> int:
    """Compare; 1 when an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", help="the earlier one, as git names it")
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="stores whose name has this word")
    parser.add_argument("--verb", action="append", default=[], choices=VERBS, help="only these")
    parser.add_argument("--seconds", type=float, default=600.0, help="for one store: made, or asked [%(default)g]")
    options = parser.parse_args()
    names = [DEMO, *(sorted(path.name for path in CAPTURES.iterdir() if path.is_dir()) if CAPTURES.is_dir() else ())]
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="iolens-compare-") as folder:
        packed = subprocess.run(["git", "archive", options.revision, "src"], cwd=REPOSITORY, stdout=-1, check=True)
        with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
            archive.extractall(folder, filter="data")
        for name in [name for name in names if not options.only or any(word in name for word in options.only)]:
            store = Path(folder) / name / "store"
            made_by = ["ingest", str(CAPTURES / name), "--store", str(store), *SUPPLIED]
            if name == DEMO:
                made_by = ["demo", "--output", str(store.parent)]
            total += compared(name, made_by, store, [Path(folder) / "src", REPOSITORY / "src"], options)
    print(f"{sum(total.values())} answers: {', '.join(f'{count} {name}' for name, count in total.most_common())}")
    return 1 if total["differs"] or total["no answers"] else 0


if __name__ == "__main__":
    sys.exit(main())
