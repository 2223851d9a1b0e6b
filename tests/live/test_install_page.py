"""The install page, followed literally: all commands are run in their order, on two machines made of namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.console_examples import missing
from tests.live.machine import Machine
from tests.live.spark_cluster import ComponentMissing

pytestmark = pytest.mark.live
PAGE = Path(__file__).parents[2] / "docs" / "install.md"
BLOCK = re.compile(r'^```(?:sh title="on (the server|oss1)"|(console))\n(.*?)^```', re.MULTILINE | re.DOTALL)
LEFT_BEHIND = (
    "/opt/iolens /usr/local/bin/iolens /usr/local/sbin/iolens-agent /etc/iolens /etc/iolens.toml /var/lib/iolens* "
    "/var/spool/iolens /var/cache/iolens /etc/systemd/system/iolens* /root/*.token"
)


@dataclass(frozen=True)
class Step:
    """One block of the page: where it is run, its commands, and what they are said to print."""

    machine: str
    commands: str
    shown: list[str]

    @property
    def title(self) -> str:
        return self.commands.strip().splitlines()[-1]


def steps() -> list[Step]:
    text = PAGE.read_text("utf-8")
    result = []
    for machine, console, block in BLOCK.findall(text):
        if console:
            command, *shown = block.removeprefix("$ ").splitlines()
            result.append(Step("the server", command, shown))
        else:
            result.append(Step(machine, block, []))
    return result


@dataclass
class Site:
    """The two machines of the page; `ssh` and `scp` lead from the one to the other."""

    server: Machine
    oss1: Machine

    def follow(self, step: Step) -> str:
        printed = ""
        for lines in _parts(step.commands):
            if lines.startswith("ssh oss1 "):
                done = self.oss1.run(lines.removeprefix("ssh oss1 "))
            elif copied := re.fullmatch(r"scp (\S+) oss1:(\S+)\n?", lines):
                done = self.copy(*copied.groups())
            else:
                done = (self.server if step.machine == "the server" else self.oss1).run(f"set -e\n{lines}")
            printed += done.stdout
            assert done.returncode == 0, f"{lines}\n{done.stdout}"
        return printed

    def copy(self, source: str, target: str) -> object:
        encoded = self.server.run(f"base64 '{source}'")
        assert encoded.returncode == 0, encoded.stdout
        return self.oss1.run(f"umask 077; base64 -d > '{target}'", stdin=encoded.stdout)


def _parts(commands: str) -> Iterator[str]:
    """What one shell runs: lines up to the next `ssh` or `scp`, which are for two machines."""
    own: list[str] = []
    for line in commands.splitlines(keepends=True):
        if line.startswith(("ssh ", "scp ")):
            yield from ["".join(own)] if own else []
            yield line.rstrip("\n")
            own = []
        else:
            own.append(line)
    yield from ["".join(own)] if own else []


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(Machine("iolens"))
            yield Site(server, stack.enter_context(Machine("oss1", server)))
        except ComponentMissing as error:
            pytest.skip(str(error))


def test_every_command_of_the_page_is_followed() -> None:
    assert len(steps()) >= 15
    assert len(re.findall(r"^```(?:sh|console)", PAGE.read_text("utf-8"), re.MULTILINE)) == len(steps())
    assert {step.machine for step in steps()} == {"the server", "oss1"}


@pytest.mark.parametrize("step", steps(), ids=lambda step: step.title[:40])
def test_a_step_works_and_prints_what_it_says(site: Site, step: Step) -> None:
    printed = site.follow(step).splitlines()
    assert missing(step.shown, printed) == []


def test_nothing_is_left_after_the_last_step(site: Site) -> None:
    for machine in (site.server, site.oss1):
        left = machine.run(f"ls -d {LEFT_BEHIND} 2>/dev/null; getent passwd iolens; pgrep -a iolens")
        assert left.stdout == ""
