"""`/usr/bin/python3 -m iolens.agent.pcp`: the agent that pmcd starts, with no other package than PCP's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from iolens.agent.pcp.domain_agent import SYSTEM_PYTHON, DomainAgent, PcpSettings, write_installation
from iolens.errors import UsageError


def main(words: Sequence[str] | None = None) -> None:
    """Serve until pmcd ends; or write what PCP needs for that."""
    given = _parser().parse_args(words)
    if given.install is None:
        DomainAgent(_settings(given)).run()
        return
    try:
        for path in write_installation(given.install, _settings(given), given.python):
            sys.stdout.write(f"{path}\n")
    except UsageError as error:
        sys.exit(f"iolens: {error}")


def parsed_settings(words: Sequence[str]) -> PcpSettings:
    """The settings that options ask for."""
    return _settings(_parser().parse_args(words))


def _parser() -> argparse.ArgumentParser:
    default = PcpSettings()
    parser = argparse.ArgumentParser("python3 -m iolens.agent.pcp", description=__doc__)
    parser.add_argument("--root", type=Path, default=default.root, help="where /proc and /sys are")
    parser.add_argument("--domain", type=int, default=default.domain, help="domain number, as in pmcd.conf")
    parser.add_argument("--jobs", type=int, default=default.jobs, help="the busiest jobs of each file system; 0: none")
    parser.add_argument("--interval", type=float, default=default.interval_s, help="read at most this often, seconds")
    parser.add_argument("--jobs-interval", type=float, default=default.jobs_interval_s, help="job_stats, seconds")
    parser.add_argument("--filesystem", help="file system of targets that do not carry its name")
    parser.add_argument("--log", help="file of the agent's log; - is pmcd's own")
    parser.add_argument(
        "--install", type=Path, metavar="DIR", help="write what PCP needs to start this into DIR, and end"
    )
    parser.add_argument("--python", default=SYSTEM_PYTHON, help="for --install: the Python that has PCP's module")
    return parser


def _settings(given: argparse.Namespace) -> PcpSettings:
    return PcpSettings(
        given.root, given.domain, given.jobs, given.interval, given.jobs_interval, given.filesystem, given.log
    )


if __name__ == "__main__":
    main()
