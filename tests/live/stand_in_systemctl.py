#!/usr/bin/env python3
"""`systemctl` where systemd does not run: checks units with `systemd-analyze`, and starts what they say as their user.

Knows daemon-reload, enable --now, disable --now, start, stop and restart.
"""

import os
import pwd
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path("/etc/systemd/system")
RUNNING = Path("/mnt/running")


def settings(unit):
    """The section [Service]: values by key."""
    values = {}
    for line in (UNITS / unit).read_text().partition("[Service]")[2].partition("[Install]")[0].splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return values


def environment(service):
    variables = dict(os.environ) | dict(value.split("=", 1) for value in service.get("Environment", ()))
    for name in service.get("EnvironmentFile", ()):
        path = Path(name.removeprefix("-"))
        if not name.startswith("-") or path.exists():
            variables |= {key: value.strip('"') for key, value in re.findall(r"^(\w+)=(.*)$", path.read_text(), re.M)}
    return variables


def words(line, variables):
    """As systemd: $NAME alone is split into words."""
    for word in shlex.split(line):
        yield from shlex.split(variables[word[1:]]) if word.startswith("$") else [word]


def start(unit):
    subprocess.run(["systemd-analyze", "verify", UNITS / unit], check=True)
    if unit.endswith(".timer"):
        return
    service = settings(unit)
    user = service.get("User", ["root"])[0]
    for folder in " ".join(service.get("StateDirectory", ())).split():
        Path("/var/lib", folder).mkdir(mode=0o750, exist_ok=True)
        os.chown(Path("/var/lib", folder), *pwd.getpwnam(user)[2:4])
    variables = environment(service)
    for line in service.get("ExecStartPre", ()):
        subprocess.run(shlex.split(line.lstrip("+")), check=True)
    for line in service["ExecStart"]:
        command = ["runuser", "-u", user, "--", *words(line, variables)]
        if service["Type"] == ["oneshot"]:
            subprocess.run(command, env=variables, cwd="/", check=True)
        else:
            with Path(f"/mnt/{unit}.log").open("ab") as log:
                RUNNING.mkdir(exist_ok=True)
                process = subprocess.Popen(
                    command,
                    env=variables,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            (RUNNING / unit).write_text(str(process.pid))


def stop(unit):
    if (RUNNING / unit).exists():
        pid = int((RUNNING / unit).read_text())
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 60
        while Path(f"/proc/{pid}").exists():
            if time.monotonic() > until:
                sys.exit(f"{unit} does not stop")
            time.sleep(0.05)
        (RUNNING / unit).unlink()


def main(verb, *arguments):
    for unit in (word for word in arguments if word != "--now"):
        if verb in ("disable", "stop", "restart"):
            stop(unit)
        if verb in ("enable", "start", "restart"):
            start(unit)


main(*sys.argv[1:])
