"""What PCP needs to start the agent: its script, the namespace, the line for pmcd.conf, and scripts to install it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from iolens.agent.pcp.domain_agent import PcpSettings
from iolens.errors import UsageError
from iolens.sources.pcp.lustre_metrics import ROOT

SYSTEM_PYTHON: Final = "/usr/bin/python3"
LARGEST_DOMAIN: Final = 510
SCRIPT: Final = f"pmda{ROOT}.python"
_EXECUTABLE: Final = 0o755

_AGENT: Final = '''#!{python}
"""Lustre for Performance Co-Pilot. Started by pmcd; written by `iolens export pcp --install`."""

import sys

sys.path.append({package!r})  # after the system's own: only iolens is taken from here
from iolens.agent.pcp.__main__ import main  # noqa: E402

main({words!r} + sys.argv[1:])
'''
_INSTALL: Final = """#!/bin/sh
# {action} the agent: `./{name}` as root, beside a running pmcd.
. $PCP_DIR/etc/pcp.env
. $PCP_SHARE_DIR/lib/pmdaproc.sh
iam={root}
python_opt=true
daemon_opt=false
PCP_PYTHON_PROG={python}
export PCP_PYTHON_PROG
pmdaSetup
pmda{name}
exit
"""


def package_directory() -> Path:
    """Where `iolens` is imported from."""
    return Path(__file__).resolve().parents[3]


def namespace(domain: int) -> str:
    """The namespace file: the agent itself knows what is below its name."""
    return f"root {{\n\t{ROOT}\t{domain}:*:*\n}}\n"


def pmcd_line(directory: Path, domain: int, python: str = SYSTEM_PYTHON) -> str:
    """The line for pmcd.conf."""
    return f"{ROOT}\t{domain}\tpipe\tbinary\t{python} {directory / SCRIPT}\n"


def write_installation(directory: Path, settings: PcpSettings, python: str = SYSTEM_PYTHON) -> list[Path]:
    """Write the files that PCP needs into a directory; those written."""
    directory = directory.absolute()
    if not 1 <= settings.domain <= LARGEST_DOMAIN:
        raise UsageError(f"--domain {settings.domain}: PCP knows 1 to {LARGEST_DOMAIN}")
    if any(word.split() != [word] for word in (str(directory), python)):
        raise UsageError(f"--install {directory}: pmcd.conf has no way to write a path with blanks")
    words = agent_words(settings)
    files = {
        SCRIPT: _AGENT.format(python=python, package=str(package_directory()), words=words),
        "root": namespace(settings.domain),
        "pmcd.conf": pmcd_line(directory, settings.domain, python),
        "Install": _INSTALL.format(action="Installs", name="Install", root=ROOT, python=python),
        "Remove": _INSTALL.format(action="Removes", name="Remove", root=ROOT, python=python),
    }
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (directory / name).write_text(text)
            if name in (SCRIPT, "Install", "Remove"):
                (directory / name).chmod(_EXECUTABLE)
    except OSError as error:
        raise UsageError(f"--install {directory}: {error.strerror}") from None
    return [directory / name for name in files]


def agent_words(settings: PcpSettings) -> list[str]:
    """The settings as options of the agent."""
    words = {
        "--root": str(settings.root.absolute()),
        "--domain": str(settings.domain),
        "--jobs": str(settings.jobs),
        "--interval": f"{settings.interval_s:g}",
        "--jobs-interval": f"{settings.jobs_interval_s:g}",
        "--filesystem": settings.filesystem,
        "--log": settings.log,
    }
    return [word for option, value in words.items() if value is not None for word in (option, value)]
