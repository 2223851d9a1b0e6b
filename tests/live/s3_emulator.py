"""An S3 endpoint on 127.0.0.1 (moto's server) with one bucket, for delta-rs."""

from __future__ import annotations

import shutil
import sys
import tempfile
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from tests.live.spark_cluster import HOST, ComponentMissing, Daemon


class S3Emulator:
    """`with S3Emulator() as s3:` gives `url`, `storage_options` and `environment`; every start is an empty bucket."""

    def __init__(self, bucket: str = "telemetry") -> None:
        self.bucket = bucket
        self.url = f"s3://{bucket}"
        self.endpoint = ""

    def __enter__(self) -> Self:
        if find_spec("moto") is None or find_spec("flask") is None:
            raise ComponentMissing("moto: pip install 'moto[server]'")
        self.directory = Path(tempfile.mkdtemp(prefix="s3-emulator-"))
        command = [sys.executable, "-m", "moto.server", "-H", HOST, "-p", "0"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.directory)}  # no credentials of the person's own
        self.daemon = Daemon(command, self.directory / "moto.log", environment)
        try:
            self.endpoint = self.daemon.wait_for(rf"Running on (http://{HOST}:\d+)")
            request = urllib.request.Request(f"{self.endpoint}/{self.bucket}", method="PUT")
            urllib.request.urlopen(request, timeout=30).close()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the server; the objects were only in its memory."""
        self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in its environment to reach the emulator with any AWS client."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    @property
    def storage_options(self) -> dict[str, str]:
        """For delta-rs: a commit is a PUT with If-None-Match, so of two writers of one version exactly one wins."""
        return self.environment | {"aws_conditional_put": "etag"}
