"""Two processes that answer: one with the package of the earlier revision, one with that of this one."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from comparison.verdicts import Answer

SCRIPTS: Final = Path(__file__).parent.parent
PROGRESS_S: Final = 30.0
GRACE_S: Final = 30.0  # after the time of an answer, until its process is killed
MOST_DEATHS: Final = 20
CONFIG: Final = "iolens.toml"


class DriverError(Exception):
    """A process that cannot answer at all."""


@dataclass
class Answers:
    """What one side said, by name, and how long each took, in seconds. `file` keeps the lines it sent."""

    file: Path
    known: dict[str, Answer] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    pending: str = ""  # the name of the answer that is made
    _texts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for line in self.file.read_text("utf-8").splitlines() if self.file.exists() else ():
            with suppress(ValueError):  # the last line of a run that was ended
                self.take(json.loads(line))
        self.pending = ""

    def hear(self, line: str) -> None:
        """Keep and take a line."""
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(line)
        self.take(json.loads(line))

    def take(self, sent: Mapping[str, Any]) -> None:
        """What a line of the driver says."""
        if "begin" in sent:
            self.pending = sent["begin"]
        elif "digest" in sent:
            self._texts[sent["digest"]] = sent["text"]
        else:
            self.known[sent["name"]] = Answer(self._texts[sent["is"]], sent["error"], sent["code"])
            self.seconds[sent["name"]] = sent["seconds"]
            self.pending = ""


def environment(source: Path, place: Path) -> dict[str, str]:
    """That of a process that answers, at a place, with a package."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("IOLENS_", "COV_"))}
    path = os.pathsep.join(map(str, (source, SCRIPTS)))
    return {**kept, "PYTHONPATH": path, "IOLENS_CONFIG": str(place / CONFIG), "PYTHONHASHSEED": "0", "TZ": "UTC"}


def started(source: Path, place: Path, request: Mapping[str, Any]) -> subprocess.Popen[str]:
    """The driver, with its request."""
    with (place.parent / f"{place.name}.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "comparison.driver"], cwd=place, env=environment(source, place), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    assert process.stdin is not None
    json.dump(request, process.stdin)
    process.stdin.close()
    return process


def printed(source: Path, place: Path, commands: Sequence[Sequence[str]], seconds: float) -> list[tuple[str, str]]:
    """What commands print, and their errors."""
    process = started(source, place, {"commands": commands})
    assert process.stdout is not None
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        text = process.stdout.read()
    finally:
        timer.cancel()
    if process.wait() != 0:
        raise DriverError(_last_words(place, process.returncode))
    return [(out, error) for out, error in json.loads(text)]


def ask(source: Path, place: Path, request: Mapping[str, Any], answers: Answers) -> None:
    """Gather all answers of one side; a process that dies or hangs loses the one answer it was at."""
    for _ in range(MOST_DEATHS):
        process = started(source, place, {**request, "source": str(source), "done": list(answers.known)})
        read(process, answers, float(request["seconds"]) + GRACE_S)
        if process.wait() == 0:
            return
        if not answers.pending:
            raise DriverError(_last_words(place, process.returncode))
        answers.known[answers.pending] = Answer("", "the process ended", process.returncode)


def asked_of_both(
    sources: Sequence[Path], places: Sequence[Path], request: Mapping[str, Any], progress: Callable[[str], None]
) -> list[Answers]:
    """Of the earlier and of this revision, at the same time; `progress` hears now and then how far they are."""
    both = [Answers(place.parent / f"{place.name}.answers") for place in places]
    with ThreadPoolExecutor(2) as pool:
        sides = zip(sources, places, both, strict=True)
        under_way = {pool.submit(ask, source, place, request, answers) for source, place, answers in sides}
        while under_way:
            done, under_way = wait(under_way, PROGRESS_S, FIRST_EXCEPTION)
            for future in done:
                future.result()
            progress(" and ".join(f"{len(answers.known):,}" for answers in both))
    return both


def read(process: subprocess.Popen[str], answers: Answers, patience_s: float) -> None:
    """Take what it sends until it ends; it is killed when nothing comes for too long."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def pump() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    try:
        while (line := lines.get(timeout=patience_s)) is not None:
            answers.hear(line)
    except queue.Empty:
        process.kill()


def _last_words(place: Path, code: int) -> str:
    log = place.parent / f"{place.name}.log"
    return f"exit code {code}: {log.read_text('utf-8', 'replace')[-2000:]}"
