"""`/usr/bin/python3 -m iolens.agent.pcp`: the agent that pmcd starts, with no other package than PCP's own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from iolens.agent.pcp.domain_agent import DomainAgent, PcpSettings


def main(words: Sequence[str] | None = None) -> None:
    """Serve until pmcd ends."""
    DomainAgent(parsed_settings(words)).run()


def parsed_settings(words: Sequence[str] | None = None) -> PcpSettings:
    """The options given."""
    default = PcpSettings()
    parser = argparse.ArgumentParser("python3 -m iolens.agent.pcp", description=__doc__)
    parser.add_argument("--root", type=Path, default=default.root, help="where /proc and /sys are")
    parser.add_argument("--domain", type=int, default=default.domain, help="domain number, as in pmcd.conf")
    parser.add_argument("--jobs", type=int, default=default.jobs, help="the busiest jobs of each file system; 0: none")
    parser.add_argument("--interval", type=float, default=default.interval_s, help="read at most this often, seconds")
    parser.add_argument("--jobs-interval", type=float, default=default.jobs_interval_s, help="job_stats, seconds")
    parser.add_argument("--filesystem", help="file system of targets that do not carry its name")
    parser.add_argument("--log", help="file of the agent's log; - is pmcd's own")
    given = parser.parse_args(words)
    return PcpSettings(
        given.root, given.domain, given.jobs, given.interval, given.jobs_interval, given.filesystem, given.log
    )


if __name__ == "__main__":
    main()
