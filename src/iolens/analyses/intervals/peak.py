"""The peak bandwidth of a file system: as given, else as configured."""

from __future__ import annotations

from iolens.analyses import Options, StoreKnowledge
from iolens.store.selection import Selection
from iolens.units import parse_rate


def peak_options(known: StoreKnowledge, selection: Selection, options: Options) -> Options:
    """`peak` of the options in bytes per second, and where it is from where it was not given."""
    given, configured = options.pop("peak", None), known.config.filesystem(selection.filesystem).peak_bytes_per_s
    if given is not None:
        return {"peak_bytes_per_s": parse_rate(given) if isinstance(given, str) else float(given)}
    return {} if configured is None else {"peak_bytes_per_s": configured, "peak_origin": "configured"}
