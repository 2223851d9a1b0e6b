"""Documentation that tells the truth: generated pages are current, links live, examples print what they say."""

from __future__ import annotations

import dataclasses
import gzip
import os
import re
import subprocess
import time
import tomllib
import typing
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import generate_docs
import pytest
import sample_walk

from iolens.analyses.results import Coverage
from iolens.analyses.utilization.analysis import Utilization
from tests.console_examples import examples, missing, run

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]


COMMANDS: list[tuple[str, ...]] = list(generate_docs.command_names())


@pytest.mark.parametrize("name", list(generate_docs.PAGES))
def test_a_generated_page_agrees_with_the_code(name: str) -> None:
    assert (DOCS / name).read_text("utf-8") == generate_docs.PAGES[name](), "run `make docs`"


def test_the_walk_of_one_sample_is_the_one_that_is_written_down() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    match = re.search(r"<summary>The (\d+) functions</summary>\n\n```text\n(.*?)```", page, re.DOTALL)
    assert match is not None
    walked = {f"{module.removesuffix('.py').replace('/', '.')}.{name}" for module, name in sample_walk.walk()}
    assert {line.split()[1] for line in match[2].splitlines()} == walked, "run scripts/sample_walk.py"
    assert int(match[1]) == len(walked) <= 83


def test_no_figure_of_the_import_graph_is_left_over() -> None:
    drawn = {f"images/{path.name}" for path in (DOCS / "images").glob("imports*.svg")}
    assert drawn == {name for name in generate_docs.PAGES if name.startswith("images/imports")}


def test_every_command_says_what_it_does_and_shows_an_example() -> None:
    texts = {" ".join(("iolens", *words)): generate_docs.help_text(words) for words in COMMANDS}
    raw = [name for name, text in texts.items() if "\\b" in text]
    assert raw == [], "click wants the character \\b, not a backslash and a b: the help is not a raw string"
    verbs = {name: text for name, text in texts.items() if name == "iolens" or "COMMAND [ARGS]" not in text}
    assert [name for name, text in verbs.items() if not re.search(rf"Examples?:\s+{name}", text)] == []


def test_every_command_and_table_is_documented() -> None:
    assert len(COMMANDS) > 10
    page = (DOCS / "commands.md").read_text("utf-8")
    for words in COMMANDS:
        assert f"## {' '.join(('iolens', *words))}\n" in page


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _headings(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {_slug(result) for result in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def test_relative_links_lead_somewhere() -> None:
    assert [f"{page.name}: {link}" for page in PAGES for link in _dead_links(page)] == []


def _dead_links(page: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    for link in links:
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _headings(target)):
            yield link


def test_the_map_leads_to_every_page() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    assert [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index] == []


def _json_keys(result: type) -> Iterator[str]:
    """Every key of a result's JSON, at any depth."""
    hints = typing.get_type_hints(result)
    for field in dataclasses.fields(result):
        if field.metadata.get("json", True):
            yield field.name
            for inner in _dataclasses_in(hints[field.name]):
                if inner is not result:
                    yield from _json_keys(inner)


def _dataclasses_in(hint: object) -> Iterator[type]:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for argument in typing.get_args(hint):
        yield from _dataclasses_in(argument)


@pytest.mark.parametrize("result", [Utilization, Coverage])
def test_every_json_key_is_documented(result: type) -> None:
    page = (DOCS / "utilization.md").read_text("utf-8")
    if result is Coverage:
        page = page.partition("\n## Coverage\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", page))
    assert sorted(set(_json_keys(result)) - named) == []


@pytest.fixture(scope="module")
def quick_start(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, list[str], list[str]]]:
    """Every command of the quick start, run once in order: what is shown below it and what it printed."""
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "docs").symlink_to(DOCS)
    shown_there = examples(DOCS / "quickstart.md")
    return [(command, shown, run(command, folder).stdout.splitlines()) for command, shown in shown_there]


def test_the_quick_start_prints_what_it_says(quick_start: list[tuple[str, list[str], list[str]]]) -> None:
    assert len(quick_start) >= 8
    for command, shown, printed in quick_start:
        assert missing(shown, printed) == [], f"$ {command}"


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the capture script of the quick start leaves when it runs into the next hour and is stopped.

    `lctl` is made up, and `date` is the real one moved on by what the file `ahead` says.
    """
    folder = tmp_path_factory.mktemp("capture")
    page = (DOCS / "quickstart.md").read_text("utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (folder / "capture.sh").write_text(next(block for block in blocks if "lctl" in block), "utf-8")
    for name, text in (("lctl", LCTL), ("date", DATE), ("hostname", "#!/bin/sh\necho oss1\n")):
        (folder / name).write_text(text, "utf-8")
        (folder / name).chmod(0o755)
    ahead = 600 - int(time.time()) % 3600  # ten minutes past the hour
    (folder / "ahead").write_text(str(ahead), "utf-8")
    captures = folder / "captures"
    captures.mkdir()
    for name in OLD_FILES:
        (captures / name).write_bytes(b"")
        os.utime(captures / name, (1_700_000_000, 1_700_000_000))
    variables = {"CAPTURE_DIR": str(captures), "CAPTURE_INTERVAL": "1", "CAPTURE_JOBS_INTERVAL": "2"}
    environment = {**os.environ, **variables, "FAKE": str(folder), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    command = ["sh", str(folder / "capture.sh")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as script:
        try:
            _wait_for_samples(captures, "*.txt", 5)
            again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            (folder / "ahead").write_text(str(ahead + 3600), "utf-8")
            _wait_for_samples(captures, "*.txt.gz", 5)
            _wait_for_samples(captures, "*.txt", 2)
        finally:
            script.terminate()
        assert script.communicate(timeout=60)[1] == ""
    assert script.returncode == 0
    assert again.returncode == 1
    assert "already running" in again.stderr
    return captures


def _wait_for_samples(folder: Path, pattern: str, count: int) -> None:
    """Until files of that name hold so many samples and can be read to their end."""
    for _ in range(600):
        with suppress(OSError, EOFError):
            if sum(_text(path).count("BEGIN") for path in folder.glob(pattern)) >= count:
                return
        time.sleep(0.1)
    raise AssertionError(f"{pattern} never held {count} samples")


def _text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def test_the_capture_script_begins_a_file_every_hour_and_compresses_it(captures: Path) -> None:
    first, second = sorted(captures.glob("iolens-oss1-2*"))
    assert [path.suffixes for path in (first, second)] == [[".txt", ".gz"]] * 2
    assert first.name[:23] < second.name[:23], "the name has day and hour"
    assert {path.stat().st_mode & 0o777 for path in (first, second)} == {0o600}
    for text in (_text(first), _text(second)):
        assert text.count("version=") == text.count(".kbytestotal=") == 1
        assert text.count("obdfilter.demo-OST0000.stats=") == text.count("BEGIN")
    assert 2 <= _text(first).count("job_stats=") < _text(first).count("BEGIN"), "at an interval of their own"


def test_the_capture_script_removes_only_its_own_old_files(captures: Path) -> None:
    others = {path.name for path in captures.iterdir() if not path.name.startswith("iolens-oss1-2")}
    assert others == {"lock", "iolens-oss2-20230101T000000Z.txt.gz", "iolens-oss1-notes.txt.gz", "capture.txt.gz"}


def test_the_files_of_the_capture_script_are_read(captures: Path, tmp_path: Path) -> None:
    done = run(f"iolens ingest lustre-lctl '{captures}'/iolens-oss1-2*.txt.gz --store centre", tmp_path)
    assert done.returncode == 0, done.stdout
    shown = {name: int(count) for count, name in re.findall(r"(\d+) (job_io|target_\w+)", done.stdout)}
    assert shown["target_io"] == shown["target_sizes"] >= 6
    assert shown["job_io"] >= 2
    assert shown["target_capacity"] == 2


OLD_FILES = (
    "iolens-oss1-20230101T000000Z.txt.gz",  # removed
    "iolens-oss1-20230101T010000Z.txt",  # left by a crash: compressed, then removed
    "iolens-oss2-20230101T000000Z.txt.gz",
    "iolens-oss1-notes.txt.gz",
    "capture.txt.gz",
)

DATE = r"""#!/bin/sh
exec /bin/date -d "$(($(cat "$FAKE/ahead") - 7200)) seconds" "$@" # never later than now: the future is refused
"""

LCTL = r"""#!/bin/bash
# Prints what it is asked for, as far as this server has it, and complains about the rest.
now=$(date +%s.%N)
count=${now%.*}
for wanted in "${@:2}"; do
    case $wanted in
    'obdfilter.*.stats') printf '%s\n' obdfilter.demo-OST0000.stats= "snapshot_time $now secs.nsecs" \
        "write_bytes $count samples [bytes] 4096 4096 ${count}000" ;;
    'osd-*.*.brw_stats') printf '%s\n' osd-ldiskfs.demo-OST0000.brw_stats= "snapshot_time: $now secs.nsecs" "" \
        "  read | write" "disk I/O size  ios % cum % | ios % cum %" "4K: 0 0 0 | $count 100 100" "" ;;
    'obdfilter.*.job_stats') printf '%s\n' obdfilter.demo-OST0000.job_stats= job_stats: "- job_id: ior.1234" \
        "  snapshot_time: ${now%.*}" "  read_bytes: { samples: 0, unit: bytes, min: 0, max: 0, sum: 0 }" \
        "  write_bytes: { samples: $count, unit: bytes, min: 4096, max: 4096, sum: ${count}000 }" ;;
    'obdfilter.*.kbytes*') echo obdfilter.demo-OST0000.kbytestotal=1000; echo obdfilter.demo-OST0000.kbytesfree=400 ;;
    version) echo version=2.15.3 ;;
    *) echo "error: get_param: param_path '$wanted': No such file or directory" >&2 ;;
    esac
done
exit 2
"""


def test_the_readme_shows_what_the_demo_prints(quick_start: list[tuple[str, list[str], list[str]]]) -> None:
    readme = (REPOSITORY / "README.md").read_text("utf-8")
    block = next(iter(re.findall(r"^```text\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)))
    shown = [line for line in block.splitlines() if line.strip()]
    assert len(shown) > 8
    printed = next(printed for command, _, printed in quick_start if command == "iolens demo --end 2026-01-07")
    position = 0
    for line in shown:
        assert line in printed[position:], f"{line!r} is not printed by the demo, or not in this place"
        position = printed.index(line, position) + 1


def test_the_readme_figures_are_there_and_small() -> None:
    shown = re.findall(r"docs/(images/demo-[^)]+)", (REPOSITORY / "README.md").read_text("utf-8"))
    assert len(shown) == 5
    for name in shown:
        figure = DOCS / name
        assert figure.read_bytes().startswith(b"\x89PNG")
        assert figure.stat().st_size < 100_000


def test_the_version_is_written_once_and_has_its_changes() -> None:
    import iolens

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/iolens/__init__.py"
    assert f"## {iolens.__version__} " in (REPOSITORY / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("shown", "printed", "agrees"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "…"], ["a", "b"], True),
        (["…", "b"], ["a", "b"], True),
        (["a", "c"], ["a", "b", "c"], False),
        (["x: 59.3…"], ["x: 59.318"], True),
        (["x: 59.4…"], ["x: 59.318"], False),
        (["a", "b"], ["a"], False),
        ([], ["anything"], True),
    ],
)
def test_examples_are_compared_line_by_line(shown: list[str], printed: list[str], agrees: bool) -> None:
    assert (missing(shown, printed) == []) is agrees
