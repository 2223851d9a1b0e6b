"""A machine of its own in Linux namespaces: file system, processes, network and name; nothing it does is left behind.

Its files are those of the real machine; what it writes goes to memory. Root only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from sysconfig import get_path
from typing import Self

import psutil

from tests.live.spark_cluster import ComponentMissing

REPOSITORY = Path(__file__).parents[2]
WRITTEN = ("/etc", "/opt", "/root", "/usr/local", "/var")
CHECKOUT = "/root/checkout-of-iolens"  # which the user of the server cannot enter
FIRST = "import signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); print(flush=True); sys.stdin.read()"
SET_UP = """\
set -eu
hostname {name}
ip link set lo up
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir -p /mnt/python /mnt/packages /mnt/repository /mnt/bin
overlay() {{
    mkdir -p "/mnt/layers/$1/upper" "/mnt/layers/$1/work"
    mount -t overlay -o "lowerdir=$2,upperdir=/mnt/layers/$1/upper,workdir=/mnt/layers/$1/work" overlay "$3"
}}
mount --bind '{python}' /mnt/python
mount --bind '{packages}' /mnt/packages
mount --bind '{repository}' /mnt/repository
for folder in {written}; do overlay "$folder" "$folder" "$folder"; done
chmod 700 /root
mkdir {checkout}
overlay checkout /mnt/repository {checkout}
mount -t tmpfs tmpfs /tmp
echo '127.0.0.1 localhost iolens.example.org {name}' > /etc/hosts
cat > /mnt/bin/systemctl
chmod 755 /mnt/bin/systemctl
"""


class Machine:
    """`with Machine("oss1") as machine: machine.run("hostname")`; `network_of`: whose network it shares."""

    def __init__(self, name: str, network_of: Machine | None = None) -> None:
        self.name, self.network_of = name, network_of

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
            raise ComponentMissing("namespaces: run as root with util-linux and iproute2")
        network = ["nsenter", "--net", f"--target={self.network_of.first}"] if self.network_of else []
        kinds = ["--mount", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]
        kinds += [] if self.network_of else ["--net"]
        command = [*network, "unshare", *kinds, "--", sys.executable, "-c", FIRST]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        if not self.process.stdout.readline():
            raise ComponentMissing(f"namespaces: {self.process.stderr.read().decode().strip()}")
        (first,) = psutil.Process(self.process.pid).children()
        self.first = first.pid
        try:
            self._set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """The end of the first process is the end of all."""
        self.process.kill()
        self.process.communicate()
        until = time.monotonic() + 60
        while psutil.pid_exists(self.first):
            assert time.monotonic() < until
            time.sleep(0.02)

    def run(self, command: str, cwd: str = CHECKOUT, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """A command of a shell; standard error is part of what it printed."""
        environment = {
            "PATH": "/mnt/bin:/usr/local/sbin:/usr/local/bin:/mnt/python/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root", "LANG": "C.UTF-8", "COLUMNS": "120",
            "LD_LIBRARY_PATH": "/mnt/python/lib", "PYTHONPATH": "/mnt/packages",
            "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore", "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        inside = ["nsenter", f"--target={self.first}", "--mount", "--pid", "--uts", "--net", "--"]
        return subprocess.run(
            [*inside, "bash", "-c", f"cd {cwd}\n{command}"], env=environment, input=stdin, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
        )  # fmt: skip

    def _set_up(self) -> None:
        text = SET_UP.format(
            name=self.name, python=sys.base_prefix, packages=get_path("purelib"), repository=REPOSITORY,
            checkout=CHECKOUT, written=" ".join(WRITTEN),
        )  # fmt: skip
        stand_in = (Path(__file__).parent / "stand_in_systemctl.py").read_text("utf-8")
        done = self.run(text, "/", stand_in)
        if done.returncode:
            raise ComponentMissing(f"namespaces: {done.stdout.strip()}")
