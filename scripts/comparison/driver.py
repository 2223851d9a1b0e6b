"""Asks the revision whose package is on the path, in one process, and sends each answer as a line of JSON.

Started by `sides.py` with the package of the earlier or of this revision: a request on standard input, lines on
standard output. `{"begin": NAME}` comes before an answer, so that one who waits knows which takes too long.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from comparison import product, verbs
from comparison.visible_page import visible_page

OUT: Final = Path("out")
COLUMNS: Final = 80
FAMILIES: Final = ("help", "verbs", "figures", "reports", "server")
REPORTS: Final = ("report", "plan rationale")  # verbs whose answers are documents


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was printed and written, or the error; and the exit code or HTTP status."""

    text: str
    error: str = ""
    code: int = 0


class TimeIsUp(BaseException):
    """No answer: it took too long. No handler of the package may take it for its own."""


class Screen(io.TextIOWrapper):
    """Where a command prints; perhaps it takes it for a terminal."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True, newline="")
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """As a terminal says."""
        return self._is_terminal

    @property
    def text(self) -> str:
        """All that was printed."""
        buffer = self.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode("utf-8", "replace")


class Session:
    """Answers as they are sent: texts once, answers that were sent before are not asked again."""

    def __init__(self, request: dict[str, Any], stream: TextIO) -> None:
        self.request = request
        self.values: dict[str, Any] = request["values"]
        self._done = frozenset(request["done"])
        self._stream = stream
        self._sent: set[str] = set()

    def wants(self, family: str, text: str = "") -> bool:
        """Whether a family is asked for, and a question of these words."""
        words = self.request["only"]
        return family in self.request["families"] and (not words or not text or any(word in text for word in words))

    def has(self, name: str) -> bool:
        """Whether it was answered before."""
        return name in self._done

    def ask(self, name: str, work: Callable[[], Outcome], *, again: bool = False) -> Outcome | None:
        """Ask and send; `again`: what was sent before is asked for the sake of what follows."""
        if name in self._done:
            return work() if again else None
        self.begin(name)
        began = time.monotonic()
        outcome = limited(work, self.request["seconds"])
        self.send(name, outcome, time.monotonic() - began)
        return outcome

    def begin(self, name: str) -> None:
        """Say what is asked now."""
        self._send({"begin": name})

    def send(self, name: str, outcome: Outcome, seconds: float = 0.0) -> None:
        """An answer; its text only if no other had the same."""
        if name in self._done:
            return
        digest = hashlib.sha256(outcome.text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        if digest not in self._sent:
            self._sent.add(digest)
            self._send({"digest": digest, "text": outcome.text})
        self._send(
            {"name": name, "is": digest, "error": outcome.error, "code": outcome.code, "seconds": round(seconds, 3)}
        )

    def _send(self, line: dict[str, Any]) -> None:
        self._stream.write(json.dumps(line) + "\n")
        self._stream.flush()


def limited(work: Callable[[], Outcome], seconds: float) -> Outcome:
    """The outcome, or that time was up."""

    def stop(*_: object) -> None:
        raise TimeIsUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return work()
    except TimeIsUp:
        return Outcome("", f"no answer in {seconds:g} s")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(arguments: Sequence[str], *, is_terminal: bool = False) -> Outcome:
    """What a command prints and writes: standard output, files at `{out}` by name, then standard error."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    given = [word.replace("{out}", str(OUT / "answer")) for word in arguments]
    out, err, error, code = Screen(is_terminal=is_terminal), Screen(), "", 0
    sys.argv = ["iolens", *given]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            result = product.command_line().main(given, prog_name="iolens", standalone_mode=False)
            code = result if isinstance(result, int) else 0
        except SystemExit as problem:
            code = problem.code if isinstance(problem.code, int) else 1
        except Exception as problem:
            error, code = f"{type(problem).__name__}: {problem}", 1
    files = [text for path in sorted(OUT.rglob("*")) if path.is_file() for text in (f"--- {path}", file_text(path))]
    parts = [out.text, *files, *([f"--- standard error\n{err.text}"] if err.text else [])]
    return Outcome("\n".join(parts) if len(parts) > 1 else out.text, error, code)


def file_text(path: Path) -> str:
    """What a file says, as text."""
    if path.suffix == ".parquet":
        return parquet_text(path)
    if path.suffix == ".pdf":
        return pdf_text(path.read_bytes())
    text = path.read_text("utf-8", "replace")
    return visible_page(text) if path.suffix == ".html" else text


def pdf_text(content: bytes) -> str:
    """As much of a PDF as needs no program; its words are those of the same document as Markdown."""
    return f"PDF of {content.count(b'/Type /Page') - content.count(b'/Type /Pages')} pages"


def parquet_text(path: Path) -> str:
    """Columns and their types, then a line for each row."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = [f"{field.name} {field.type}" for field in table.schema]
    return "\n".join([", ".join(columns), *(json.dumps(row, default=str) for row in table.to_pylist())])


def main() -> None:
    """Read the request, ask, and end without the package's own tidying up."""
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints past Python's own streams
    request = json.load(sys.stdin)
    os.environ.update(COLUMNS=str(COLUMNS), LINES="24", TERM="xterm-256color", SOURCE_DATE_EPOCH="1767225600")
    if (commands := request.get("commands")) is not None:  # of `stores.py`: run these and say what came of it
        json.dump([[outcome.text, outcome.error] for outcome in map(run, commands)], stream)
    else:
        session = Session(request, stream)
        product.describe_figures()
        _check_package(request["source"])
        ask_all(session)
    stream.flush()
    os._exit(0)


def _check_package(source: str) -> None:
    import iolens

    if not Path(iolens.__file__).is_relative_to(source):
        raise SystemExit(f"{iolens.__file__} is not below {source}")


def ask_all(session: Session) -> None:
    """Every family that is asked for."""
    import click

    root = product.command_line()
    context = click.Context(root, info_name="iolens")
    known = verbs.verbs_of(root, context)
    verbs.check_known(known)
    if session.request["help"]:
        ask_help(session, root, context)
    for verb in known:
        ask_verb(session, verb)
    if session.values["has_store"] and session.wants("server"):
        from comparison.server import ask_server

        ask_server(session)


def ask_help(session: Session, root: Any, context: Any) -> None:
    """The help of every command."""
    for words, _ in verbs.commands(root, context):
        command = (*words, "--help")
        if session.wants("help", " ".join(command)):
            session.ask(f"help/{' '.join(command)}", lambda command=command: run(command))  # type: ignore[misc]


def ask_verb(session: Session, verb: verbs.Verb) -> None:
    """A verb in all of its formats, each of its tables and figures."""
    brief = session.request["brief"]
    family = "reports" if verb.name in REPORTS else "verbs"
    for question in verbs.questions_of(verb, session.values, brief=brief):
        command = question.command
        words = (*verb.name.split(), *question.arguments)
        if session.wants(family, command):
            for shown, more, is_terminal in forms(question, brief=brief):
                session.ask(f"{family}/{command}{shown}", lambda: run((*words, *more), is_terminal=is_terminal))  # noqa: B023
            if question.is_main and not brief and "--table" in verb.options:
                ask_tables(session, words, command, verb.formats)
        if question.is_main and "--figure" in verb.options and session.wants("figures", command):
            ask_figures(session, words, command)


def forms(question: verbs.VerbQuestion, *, brief: bool) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Formats: how the name ends, what is added to the command, and whether it prints on a terminal."""
    formats = question.verb.formats
    if not formats:
        yield "", (), False
        return
    if not question.is_main or brief:
        chosen = [name for name in formats if name == "json"] or list(formats[:1])
        yield from ((f" --format {name}", ("--format", name), False) for name in chosen)
        if brief and question.is_main and "table" in formats:
            yield " --format table", ("--format", "table"), False
        return
    for name in formats:
        more = ("--output", "{out}.parquet") if name == "parquet" else ()
        yield f" --format {name}", ("--format", name, *more), False
    if "table" in formats:
        yield f" ({COLUMNS} columns)", ("--format", "table"), True
    if "--wide" in question.verb.options:
        yield " --wide", ("--wide",), False


def ask_tables(session: Session, words: Sequence[str], command: str, formats: Sequence[str]) -> None:
    """Each table of an answer, as CSV where that is offered."""
    listed = session.ask(f"verbs/{command} --table list", lambda: run((*words, "--table", "list")), again=True)
    if listed is None or listed.error:
        return
    for name in listed.text.partition("\n--- ")[0].split("\n"):
        if name:
            more = ("--table", name, *(("--format", "csv") if "csv" in formats else ()))
            session.ask(f"verbs/{command} --table {name}", lambda more=more: run((*words, *more)))  # type: ignore[misc]


def ask_figures(session: Session, words: Sequence[str], command: str) -> None:
    """The names of the figures of an answer, and the description of each."""
    listed = session.ask(f"figures/{command} --figure list", lambda: run((*words, "--figure", "list")), again=True)
    if listed is None or listed.error:
        return
    names = [name for name in listed.text.partition("\n--- ")[0].split("\n") if name]
    if not names:
        return
    drawn = run((*words, *(word for name in names for word in ("--figure", f"{name}={OUT / name}.svg"))))
    for name in names:
        path = OUT / f"{name}.svg"
        outcome = Outcome(path.read_text("utf-8") if path.is_file() else "", drawn.error, drawn.code)
        session.send(f"figures/{command} --figure {name}", outcome)


if __name__ == "__main__":
    main()
