"""What pytokio makes of a file, as JSON: run by the Python of an environment that has pytokio, not by ours.

`pytokio_reading.py hdf5 FILE DATASET…` or `pytokio_reading.py lmt-db FILE FROM TO`. Null is what pytokio calls missing.
"""

import datetime
import json
import sys

import numpy


def plain(values, columns, times):
    grid = numpy.asarray(values, float)
    missing = (grid == 0) & numpy.signbit(grid)
    cells = [
        [None if gone else value for value, gone in zip(*row, strict=True)] for row in zip(grid, missing, strict=True)
    ]
    return {"columns": [str(name) for name in columns], "times": [int(time) for time in times], "values": cells}


def from_hdf5(path, names):
    from tokio.connectors.hdf5 import Hdf5

    with Hdf5(path, "r") as file:
        return {name: plain(file[name][:], file.get_columns(name), file.get_timestamps(name)[:]) for name in names}


def from_lmt_database(path, begin, end):
    """pytokio's own conversion of an LMT database to its time series; it takes the stamps for UTC, as TZ says."""
    from tokio.cli.archive_lmtdb import DatasetDict
    from tokio.connectors.lmtdb import LmtDb

    span = [datetime.datetime.fromisoformat(item) for item in (begin, end)]
    database, series = LmtDb(cache_file=path), DatasetDict(*span, 5)
    series.archive_ost_data(database)
    series.archive_oss_data(database)
    series.archive_mds_data(database)
    series.archive_mds_ops_data(database)
    series.finalize()
    return {name: plain(item.dataset, item.columns, item.timestamps) for name, item in series.items()}


if __name__ == "__main__":
    kind, path, *rest = sys.argv[1:]
    rows = from_hdf5(path, rest) if kind == "hdf5" else from_lmt_database(path, *rest)
    json.dump(rows, sys.stdout)
