"""`--store` and `--config`: apart from other options, because a verb with no more of them is to begin at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def store_options(function: Function) -> Function:
    """`--store` and `--config`."""
    store = click.option(
        "--store", metavar="URL", help="Store: a directory or object-store URL [$IOLENS_STORE, ./iolens-store]"
    )
    config = click.option(
        "--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]"
    )
    return store(config(function))
