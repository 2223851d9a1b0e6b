"""`[hub]`: every key is checked, and the sample configuration shows the defaults."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from iolens.config import Config, load_config
from iolens.errors import InputError
from iolens.hub.hub_config import HubConfig, hub_config

SAMPLE = Path(__file__).parent.parent.parent / "contrib" / "iolens.toml"


def test_the_sample_shows_every_key_with_its_default() -> None:
    assert hub_config(load_config(SAMPLE)) == HubConfig() == hub_config(Config())
    assert len(tomllib.loads(SAMPLE.read_text("utf-8"))["hub"]) == len(fields(HubConfig))


def test_sizes_and_times_have_units() -> None:
    config = hub_config(Config(hub={"agent_limit": "1MiB", "commit_every": "2min", "reserve": "0B", "uploads": 3}))
    assert (config.agent_bytes, config.commit_every_s, config.reserve_bytes, config.uploads) == (1 << 20, 120, 0, 3)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("agent_limit", "1"), ("agent_limit", 5), ("agent_limit", "0B"), ("uploads", 0), ("uploads", 1.5),
        ("uploads", "2"), ("commit_every", "0s"), ("commit_every", "soon"), ("own_host_only", 1), ("nonsense", 1),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(key: str, value: object) -> None:
    with pytest.raises(InputError, match=rf"hub\.{key}"):
        hub_config(Config(path=Path("iolens.toml"), hub={key: value}))
