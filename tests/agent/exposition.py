"""Pages of the exporter read back with the reference parsers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from iolens.agent.exporter.fsu import ChosenCalibration
from iolens.agent.exporter.metrics import OPENMETRICS, TEXT
from iolens.agent.exporter.readings import Exporter, ExporterSettings, collectors
from iolens.models.transaction_time import GRACE_2012

Series = tuple[str, frozenset[tuple[str, str]]]
Samples = dict[Series, float]


def parsed(body: bytes, content_type: str = TEXT) -> Samples:
    """Every sample of a page; a page that the parser refuses, or that has a series twice, fails."""
    parse = parse_openmetrics if content_type == OPENMETRICS else parse_text
    samples: Samples = {}
    for family in parse(body.decode()):
        for sample in family.samples:
            series = (sample.name, frozenset(sample.labels.items()))
            assert series not in samples, series
            samples[series] = sample.value
    return samples


def only(samples: Samples, name: str, **labels: str) -> float:
    """The only sample of that name that has these labels."""
    values = list(matching(samples, name, **labels))
    assert len(values) == 1, (name, labels, values)
    return values[0]


def matching(samples: Samples, name: str, **labels: str) -> Iterator[float]:
    """Values of all samples of that name that have these labels."""
    for (sample_name, pairs), value in samples.items():
        if sample_name == name and labels.items() <= pairs:
            yield value


def exporter(root: Path, **settings: object) -> Exporter:
    """An exporter that reads anew at every page."""
    plain = {"interval_s": 1e-9, "jobs_interval_s": 1e-9, "timeout_s": 30.0, "version": "1.2.3"}
    asked = ExporterSettings(root, lambda _: ChosenCalibration(GRACE_2012, borrowed=True), **(plain | settings))  # type: ignore[arg-type]
    return Exporter(asked, collectors(asked, lambda line: None))
