"""A real nginx with `contrib/nginx.conf`, on free ports of 127.0.0.1 and with its files in a temporary directory."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.certificates import self_signed
from tests.live.spark_cluster import HOST, ComponentMissing, Daemon

CONFIGURATION = Path(__file__).parents[2] / "contrib" / "nginx.conf"
AROUND = """\
daemon off;
{user}
pid nginx.pid;
error_log stderr notice;
events {{}}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include iolens.conf;
}}
"""


def hashed(password: str) -> str:
    """As nginx takes it from a file of passwords."""
    words = ["openssl", "passwd", "-6", password]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


class NginxServer:
    """`with NginxServer(folder, "127.0.0.1:8470", {"ada": "secret"}) as proxy:` is an `https://` address."""

    def __init__(self, folder: Path, backend: str, passwords: Mapping[str, str]) -> None:
        self.folder, self.backend, self.passwords = folder, backend, passwords
        self.url = self.plain_url = ""

    def __enter__(self) -> Self:
        program = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
        if program is None:
            raise ComponentMissing("nginx: install the package nginx")
        self.folder.mkdir()
        self.certificate, self.key = self_signed(self.folder, HOST)
        lines = [f"{name}:{hashed(word)}\n" for name, word in self.passwords.items()]
        (self.folder / "iolens.htpasswd").write_text("".join(lines))
        user = "user root;" if os.geteuid() == 0 else ""  # its workers read the temporary directory
        (self.folder / "nginx.conf").write_text(AROUND.format(user=user))
        self._choose_ports()
        command = [program, "-p", str(self.folder), "-c", "nginx.conf"]
        self.daemon = Daemon(command, self.folder / "log", dict(os.environ))
        try:
            self.daemon.wait_for(r"(start worker processes)")
        except BaseException:
            self.daemon.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.daemon.process.terminate()  # so that it waits for its workers
        self.daemon.process.wait(60)
        self.daemon.stop()

    def _choose_ports(self) -> None:
        with ExitStack() as stack:
            sockets = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(2)]
            plain, tls = (held.getsockname()[1] for held in sockets)
        self.plain_url, self.url = f"http://{HOST}:{plain}", f"https://{HOST}:{tls}"
        text = CONFIGURATION.read_text("utf-8")
        for old, new in (
            ("listen 80;", f"listen {HOST}:{plain};"),
            ("listen 443 ", f"listen {HOST}:{tls} "),
            ("    server 127.0.0.1:8470;", f"    server {self.backend};"),
            (" /etc/nginx/iolens.pem;", f" {self.certificate};"),
            (" /etc/nginx/iolens.key;", f" {self.key};"),
            (" /etc/nginx/iolens.htpasswd;", f" {self.folder / 'iolens.htpasswd'};"),
        ):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (self.folder / "iolens.conf").write_text(text, "utf-8")
