"""`iolens completion` and `iolens man`: what shells complete, and pages that `man` takes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from iolens.cli.main import iolens as root
from iolens.cli.man import manual_pages
from tests.cli.command import iolens, iolens_process

REQUESTS = {".TH", ".SH", ".PP", ".TP", ".nf", ".fi"}


def completed(*words: str) -> list[str]:
    """What a shell offers for the last word."""
    line = " ".join(("iolens", *words))
    environment = {"_IOLENS_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = iolens_process(**environment)
    assert (done.code, done.err) == (0, "")
    return [row.partition(",")[2] for row in done.out.splitlines()]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("ut",), ["utilization"]),
        (("fs",), ["fsu"]),
        (("plan", "c"), ["capacity"]),
        (("fsu", "--figu"), ["--figure"]),
        (("fsu", "--format", "pa"), ["parquet"]),
        (("serve", "--tls"), ["--tls-cert", "--tls-key"]),
        (("serve", "t"), ["token"]),
        (("serve", "token", "add", "--role", "op"), ["operator"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
    ],
)
def test_commands_options_and_values_are_completed(words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(*words) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_iolens(shell: str) -> None:
    done = iolens("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_IOLENS_COMPLETE={shell}_complete" in done.out


def test_bash_takes_the_script() -> None:
    script = iolens("completion", "bash").out
    said = subprocess.run(
        ["bash", "-euc", f"{script}\ncomplete -p iolens"], capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == "complete -o nosort -F _iolens_completion iolens"


def test_a_page_for_each_command_and_each_page_is_named_by_the_one_above(tmp_path: Path) -> None:
    done = iolens("man", tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert done.out == f"{len(names)} manual pages in {tmp_path}\n"
    assert {"iolens.1", "iolens-utilization.1", "iolens-plan-capacity.1"} <= names
    for name in names - {"iolens.1"}:
        above, _, _ = name.removesuffix(".1").rpartition("-")
        assert name.removesuffix(".1").replace("-", r"\-") in (tmp_path / f"{above}.1").read_text("utf-8")


def test_every_line_of_a_page_is_text_or_a_known_request() -> None:
    for name, text in manual_pages(root).items():
        assert text.startswith(".TH ")
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", text), name
        for line in text.splitlines():
            assert line.split(" ")[0] in REQUESTS if line.startswith((".", "'")) else True, (name, line)
            assert not re.search(r"\\(?!fB|fR|-|e|&|\(ga)", line), (name, line)
        assert text.count("\n.nf\n") == text.count("\n.fi\n")
        assert r"\fB\-h, \-\-help\fR" in text


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_has_nothing_to_complain_of(tmp_path: Path) -> None:
    iolens("man", tmp_path)
    pages = sorted(map(str, tmp_path.iterdir()))
    done = subprocess.run(["groff", "-K", "utf8", "-man", "-ww", "-T", "utf8", *pages], capture_output=True, check=True)
    assert done.stderr == b""
    assert "iolens synthesize" in done.stdout.decode()
