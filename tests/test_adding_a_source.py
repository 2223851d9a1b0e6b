"""docs/adding-a-source.md followed literally: its files written, its package made visible, its commands run.

Instead of `pip install`, which wants a network, a `.dist-info` directory with the package's entry points is put on the
path: what an installation leaves behind.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console_examples import examples, installed, missing, run, write_files

PAGE = Path(__file__).parent.parent / "docs" / "adding-a-source.md"


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    written = write_files(PAGE, tmp_path)
    assert written == [
        "rackmeter-1.txt",
        "my-iolens-source/pyproject.toml",
        "my-iolens-source/src/my_iolens_source/__init__.py",
        "my-iolens-source/src/my_iolens_source/rackmeter.py",
        "my-iolens-source/tests/test_rackmeter.py",
    ]
    return tmp_path


def test_every_command_prints_what_the_page_says(workplace: Path) -> None:
    path = {"PYTHONPATH": installed(workplace, "my-iolens-source")}
    commands = list(examples(PAGE))
    assert [command.split()[1] for command, _ in commands].count("ingest") == 4
    for command, shown in commands:
        assert shown, f"$ {command}: the page must say what it prints"
        printed = run(command, workplace, path).stdout.splitlines()
        assert missing(shown, printed) == [], f"$ {command}"


def test_without_the_entry_point_the_file_is_not_recognised(workplace: Path) -> None:
    """So that the test above cannot pass by another way."""
    done = run("iolens ingest rackmeter-1.txt --store centre", workplace)
    assert done.returncode == 1
    assert "format not recognised; expected one of " in done.stdout
    assert "rackmeter," not in done.stdout


def test_a_source_that_cannot_be_imported_is_named(workplace: Path) -> None:
    path = {"PYTHONPATH": installed(workplace, "my-iolens-source")}
    (workplace / "my-iolens-source" / "src" / "my_iolens_source" / "rackmeter.py").write_text("import no_such_module\n")
    done = run("iolens ingest rackmeter rackmeter-1.txt --store centre", workplace, path)
    assert done.returncode == 2
    assert "iolens.sources 'rackmeter' of my_iolens_source.rackmeter:SOURCE cannot be loaded: No module" in done.stdout
