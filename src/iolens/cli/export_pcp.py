"""Serve Lustre's counters to Performance Co-Pilot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.value_types import DURATION
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.agent.pcp.domain_agent import PcpSettings

SHORTEST_INTERVAL_S = 0.05


@verb(
    "export pcp",
    "Serve Lustre's counters to Performance Co-Pilot",
    epilog="""\b
Examples:
  iolens export pcp --install /var/lib/pcp/pmdas/iolens    then run ./Install there, as root
  iolens export pcp --install ./pmda --root /copy/of/a/client --domain 401
  pminfo -dtT iolens.client.osc.rpcs                       what is served, once it is installed
""",
)
@click.option(
    "--install", "directory", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write the files that PCP needs to start the agent into DIR, and end",
)  # fmt: skip
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="Where /proc and /sys are"
)
@click.option("--domain", type=int, default=398, show_default=True, help="PCP's number for this agent: 1 to 510")
@click.option(
    "--jobs", type=click.IntRange(0, 10_000), default=100, show_default=True,
    help="Number of busiest jobs of each file system; 0: none",
)  # fmt: skip
@click.option(
    "--interval", type=DURATION, default="500ms", show_default=True, metavar="TIME", help="Read at most this often"
)
@click.option(
    "--jobs-interval",
    type=DURATION,
    default="10s",
    show_default=True,
    metavar="TIME",
    help="Read job_stats at most this often",
)
@click.option("--filesystem", "-f", metavar="NAME", help="File system of targets whose names lack it")
@click.option(
    "--python",
    default="/usr/bin/python3",
    show_default=True,
    metavar="PROGRAM",
    help="The Python that PCP's module is for",
)
def export_pcp(
    directory: Path | None,
    root: Path,
    domain: int,
    jobs: int,
    interval: float,
    jobs_interval: float,
    filesystem: str | None,
    python: str,
) -> None:
    """Serve the counters of Lustre clients and servers to pmcd, for pminfo, pmval, pmrep and pmlogger.

    Without --install it is the agent itself, which pmcd starts and asks through a pipe. It runs with the system's
    Python, for which PCP's module is compiled. Archives of its metrics load with: iolens ingest pcp.
    """
    from iolens.agent.pcp.domain_agent import PcpSettings, write_installation

    if min(interval, jobs_interval) < SHORTEST_INTERVAL_S:
        raise click.UsageError(f"intervals are at least {SHORTEST_INTERVAL_S} s")
    settings = PcpSettings(root, domain, jobs, interval, jobs_interval, filesystem)
    if directory is None:
        _serve(settings, python)
        return
    for path in write_installation(directory, settings, python):
        click.echo(str(path))
    say(f"As root: cd {directory.absolute()} && ./Install")


def _serve(settings: PcpSettings, python: str) -> None:
    """Become the agent, in the Python that has PCP's module."""
    import os
    import sys

    from iolens.agent.pcp.domain_agent import agent_words, package_directory
    from iolens.errors import UsageError

    if sys.stdin.isatty():
        raise click.UsageError("pmcd starts this and asks through a pipe; to set it up: --install DIR")
    words = [python, "-m", "iolens.agent.pcp", *agent_words(settings)]
    try:
        os.execve(python, words, {**os.environ, "PYTHONPATH": str(package_directory())})  # noqa: S606 (no shell)
    except OSError as error:
        raise UsageError(f"--python {python}: {error.strerror}") from None
