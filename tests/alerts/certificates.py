"""A certificate for localhost, made by openssl, and the TLS settings of a server that has it."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """The certificate, which signs itself, and a server's context."""
    path, key = folder / "localhost.pem", folder / "localhost.key"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", path,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key)
    return path, context
