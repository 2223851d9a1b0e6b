"""A MariaDB server on 127.0.0.1 with a data directory of its own, and LMT databases in it."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Self

from tests.live.spark_cluster import HOST, ComponentFailed, ComponentMissing, Daemon

# Tables and types of LMT's schema 1.1, as its own script creates them; MDS_OPS_DATA has no primary key there.
LMT_TABLES = {
    "FILESYSTEM_INFO": """FILESYSTEM_ID integer NOT NULL AUTO_INCREMENT PRIMARY KEY,
        FILESYSTEM_NAME varchar(128) NOT NULL, FILESYSTEM_MOUNT_NAME varchar(64) NOT NULL,
        SCHEMA_VERSION float NOT NULL""",
    "OSS_INFO": """OSS_ID integer NOT NULL AUTO_INCREMENT PRIMARY KEY, FILESYSTEM_ID integer NOT NULL,
        HOSTNAME varchar(128) NOT NULL, FAILOVERHOST varchar(128)""",
    "OST_INFO": """OST_ID integer NOT NULL AUTO_INCREMENT PRIMARY KEY, OSS_ID integer NOT NULL,
        OST_NAME varchar(128) NOT NULL, HOSTNAME varchar(128) NOT NULL, OFFLINE boolean, DEVICE_NAME varchar(128)""",
    "MDS_INFO": """MDS_ID integer NOT NULL AUTO_INCREMENT PRIMARY KEY, FILESYSTEM_ID integer NOT NULL,
        MDS_NAME varchar(128) NOT NULL, HOSTNAME varchar(128) NOT NULL, DEVICE_NAME varchar(128)""",
    "OPERATION_INFO": """OPERATION_ID integer NOT NULL AUTO_INCREMENT PRIMARY KEY,
        OPERATION_NAME varchar(64) NOT NULL UNIQUE, UNITS varchar(16) NOT NULL""",
    "TIMESTAMP_INFO": """TS_ID int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, TIMESTAMP datetime NOT NULL,
        KEY (TIMESTAMP)""",
    "OST_DATA": """OST_ID integer NOT NULL, TS_ID int unsigned NOT NULL, READ_BYTES bigint unsigned,
        WRITE_BYTES bigint unsigned, PCT_CPU float, KBYTES_FREE bigint, KBYTES_USED bigint, INODES_FREE bigint,
        INODES_USED bigint, PRIMARY KEY (OST_ID, TS_ID), INDEX (TS_ID)""",
    "OST_OPS_DATA": """OST_ID integer NOT NULL, TS_ID int unsigned NOT NULL, OPERATION_ID integer NOT NULL,
        SAMPLES bigint, PRIMARY KEY (OST_ID, TS_ID, OPERATION_ID), INDEX (TS_ID)""",
    "OSS_DATA": """OSS_ID integer NOT NULL, TS_ID int unsigned NOT NULL, PCT_CPU float, PCT_MEMORY float,
        PRIMARY KEY (OSS_ID, TS_ID), INDEX (TS_ID)""",
    "MDS_DATA": """MDS_ID integer NOT NULL, TS_ID int unsigned NOT NULL, PCT_CPU float, KBYTES_FREE bigint,
        KBYTES_USED bigint, INODES_FREE bigint, INODES_USED bigint, PRIMARY KEY (MDS_ID, TS_ID), INDEX (TS_ID)""",
    "MDS_OPS_DATA": """MDS_ID integer NOT NULL, TS_ID int unsigned NOT NULL, OPERATION_ID integer NOT NULL,
        SAMPLES bigint, SUM bigint, SUMSQUARES bigint, INDEX (TS_ID), INDEX (MDS_ID), INDEX (OPERATION_ID)""",
}


class MariaDb:
    """`with MariaDb() as server:` gives `port`, a user that may only read, and databases on request."""

    reader = "lmt_reader"

    def __init__(self) -> None:
        self.password = secrets.token_urlsafe(12) + ":@/%"  # with everything that a URL must escape

    def __enter__(self) -> Self:
        server, installer = _program("mariadbd"), _program("mariadb-install-db")
        self.directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self.directory.chmod(0o755)  # the server's own user must get through
        self.socket = self.directory / "server.sock"
        data = self.directory / "data"
        as_user = ["--user=mysql"] if os.geteuid() == 0 else []
        try:
            install = [
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
                f"--datadir={data}",
            ]
            if as_user:
                shutil.chown(self.directory, "mysql")
            done = subprocess.run(
                [installer, *install, *as_user],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                env={**os.environ, "TMPDIR": str(self.directory)},
            )
            if done.returncode:
                raise ComponentFailed(f"mariadb-install-db: {done.stdout[-500:]} {done.stderr[-500:]}")
            self.port = _free_port()
            listen = [f"--socket={self.socket}", f"--bind-address={HOST}", f"--port={self.port}"]
            lean = ["--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"]
            command = [server, "--no-defaults", f"--datadir={data}", *listen, *lean, *as_user]
            self.daemon = Daemon(command, self.directory / "server.log", {"PATH": "/usr/sbin:/usr/bin:/bin"})
            self.daemon.wait_for(r"(ready for connections)")
            self.run(f"CREATE USER {self.reader}@'{HOST}' IDENTIFIED BY '{self.password}'")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the server and forget its data."""
        if hasattr(self, "daemon"):
            self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str) -> str:
        """The address for the user that may only read; the password is not in it."""
        return f"mysql://{self.reader}@{HOST}:{self.port}/{database}"

    def run(self, sql: str, rows: Sequence[Sequence[Any]] | None = None, database: str | None = None) -> None:
        """Do something as the administrator."""
        import pymysql

        with closing(pymysql.connect(unix_socket=str(self.socket), user="root", database=database)) as connection:
            with connection.cursor() as cursor:
                if rows is None:
                    cursor.execute(sql)
                else:
                    cursor.executemany(sql, rows)
            connection.commit()

    def create_lmt(self, database: str, copy: Path) -> None:
        """An LMT database with the content of a SQLite copy, that the reader may read."""
        self.run(f"CREATE DATABASE {database}")
        for name, columns in LMT_TABLES.items():
            self.run(f"CREATE TABLE {name} ({columns})", database=database)
        with closing(sqlite3.connect(copy)) as source:
            have = {row[0] for row in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            for name in LMT_TABLES.keys() & have:
                result = source.execute(f"SELECT * FROM {name}")
                columns = [item[0] for item in result.description]
                if rows := result.fetchall():
                    places = ", ".join(["%s"] * len(columns))
                    self.run(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})", rows, database)
        self.run(f"GRANT SELECT ON {database}.* TO {self.reader}@'{HOST}'")


def _program(name: str) -> str:
    result = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if result is None:
        raise ComponentMissing(f"{name}: install mariadb-server")
    return result


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
