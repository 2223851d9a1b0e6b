"""Documentation that tells the truth: generated pages are current, links live, examples print what they say."""

from __future__ import annotations

import dataclasses
import re
import tomllib
import typing
from collections.abc import Iterator
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
    assert int(match[1]) == len(walked) <= 70


def test_no_figure_of_the_import_graph_is_left_over() -> None:
    drawn = {f"images/{path.name}" for path in (DOCS / "images").glob("imports*.svg")}
    assert drawn == {name for name in generate_docs.PAGES if name.startswith("images/imports")}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(("iolens", *words)))
def test_every_command_says_what_it_does_and_shows_an_example(words: tuple[str, ...]) -> None:
    text = generate_docs.help_text(words)
    assert "\\b" not in text, "click wants the character \\b, not a backslash and a b: the help is not a raw string"
    if not words or "COMMAND [ARGS]" not in text:
        assert re.search(rf"Examples?:\s+iolens {' '.join(words)}".rstrip(), text), text


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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    dead = []
    for link in links:
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _headings(target)):
            dead.append(link)
    assert dead == []


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


def test_the_capture_loop_is_read_back(tmp_path: Path) -> None:
    """The loop as it is pasted, with a made-up `lctl` and shorter naps."""
    page = (DOCS / "quickstart.md").read_text("utf-8")
    loop = next(block for block in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL) if "lctl" in block)
    naps = "while sleep $((5 - $(date +%s) % 5)); do"
    assert naps in loop
    loop = loop.replace(naps, "for turn in 1 2 3; do sleep 1.01").replace("/var/tmp/iolens", str(tmp_path / "captures"))
    lctl = tmp_path / "lctl"
    lctl.write_text(LCTL, "utf-8")
    lctl.chmod(0o755)
    done = run(f'PATH="{tmp_path}:$PATH"\n{loop}', tmp_path)
    assert done.stdout == ""

    done = run("iolens ingest captures/*.txt --store centre", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "6 samples: 1 target_capacity, 2 target_io, 2 target_sizes, 1 target_state" in done.stdout


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
    printed = next(printed for command, _, printed in quick_start if command == "iolens demo")
    position = 0
    for line in shown:
        assert line in printed[position:], f"{line!r} is not printed by `iolens demo`, or not in this place"
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
