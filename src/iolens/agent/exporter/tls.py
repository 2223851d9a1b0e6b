"""TLS with a given certificate, for the exporter and for `iolens serve`. Standard library only."""

from __future__ import annotations

import ssl
from pathlib import Path

from iolens.errors import UsageError


def tls_of(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """A server's side of TLS 1.2 or newer; None without a certificate."""
    if (certificate is None) != (key is None):
        raise UsageError("--tls-cert and --tls-key go together")
    return _context(certificate, key) if certificate is not None and key is not None else None


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--tls-cert {certificate} --tls-key {key}: {reason}") from None
    return context


def _no_password() -> str:
    raise ValueError("the key has a password: nobody is here to give it")
