"""The transaction model against the paper's printed values (SPEC U, check values)."""

import ast
from pathlib import Path

import narwhals as nw
import numpy as np
import pyarrow as pa
import pytest

from iolens.models import transaction_time
from iolens.models.transaction_time import (
    GRACE_2012,
    achievable_bytes_per_s,
    added,
    counted_seconds,
    counter_costs,
    fsu_pct,
    histogram_costs,
    time_terms,
)
from iolens.units import MIB


def test_table_one_rates_are_mebibytes() -> None:
    assert GRACE_2012.write.bytes_per_s_limit / MIB == pytest.approx(551, abs=0.5)
    assert GRACE_2012.read.bytes_per_s_limit / MIB == pytest.approx(775, abs=0.5)


def test_check_value_of_the_specification() -> None:
    ios = {("write", 4096): 100, ("read", MIB): 50}
    assert fsu_pct(ios, 1.0, GRACE_2012) == pytest.approx(20.93, abs=0.005)
    by_hand = 100 * (100 * (1.04e-3 + 1.73e-9 * 4096) + 50 * (8.02e-4 + 1.23e-9 * 1048576))
    assert fsu_pct(ios, 1.0, GRACE_2012) == pytest.approx(by_hand, rel=1e-12)


def test_iops_limit_is_the_inverse_latency() -> None:
    assert GRACE_2012.write.iops_limit == pytest.approx(961.5, abs=0.1)


def test_achievable_bandwidth_of_one_size_is_equation_two() -> None:
    size = 65536
    expected = size / (1.04e-3 + 1.73e-9 * size)
    assert achievable_bytes_per_s({("write", size): 7}, GRACE_2012) == pytest.approx(expected, rel=1e-12)


def test_optimal_time_leaves_large_ios_as_they_are() -> None:
    write = GRACE_2012.write
    assert write.seconds_as_optimal(4 * MIB) == write.seconds(4 * MIB)
    assert write.seconds_as_optimal(MIB) == pytest.approx(write.seconds(MIB), rel=1e-12)
    assert 256 * write.seconds_as_optimal(4096) == pytest.approx(write.seconds(MIB), rel=1e-12)


def test_numbers_arrays_and_expressions_take_the_same_formula() -> None:
    ios, moved, write = [1.0, 3.0, 7.0], [4096.0, 3e6, 7e8], GRACE_2012.write
    expected = [write.counted_seconds(n, b) for n, b in zip(ios, moved, strict=True)]
    in_arrays = added(time_terms(np.array(ios), np.array(moved), write.latency_s, write.s_per_byte))
    assert in_arrays.tolist() == expected
    costs = (nw.lit(write.latency_s), nw.lit(write.s_per_byte))
    frame = nw.from_native(pa.table({"ios": ios, "moved": moved}))
    in_engine = frame.select(added(time_terms(nw.col("ios"), nw.col("moved"), *costs)).alias("seconds"))
    assert in_engine["seconds"].to_list() == expected


def test_the_costs_of_counters_add_up_to_the_same_time() -> None:
    counts = {"read_ops": 3, "read_bytes": 3 * 4096, "write_ops": 2, "write_bytes": 2 * MIB}
    by_counter = sum(counts[name] * cost for name, cost in counter_costs(GRACE_2012).items())
    by_size = histogram_costs(GRACE_2012)
    assert by_counter == pytest.approx(counted_seconds(*counts.values(), GRACE_2012))
    assert by_counter == pytest.approx(3 * by_size["read_ios_4096"] + 2 * by_size["write_ios_1048576"])


def test_no_other_module_spells_the_model() -> None:
    """`a0·N + a1·B` multiplies by a coefficient: that stands in one module."""
    package = Path(transaction_time.__file__).parent.parent
    spelled = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in package.rglob("*.py")
        if path != Path(transaction_time.__file__)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and _names_coefficient(node)
    ]
    assert spelled == []


def _names_coefficient(product: ast.BinOp) -> bool:
    sides = (product.left, product.right)
    return any(isinstance(side, ast.Attribute) and side.attr in ("latency_s", "s_per_byte") for side in sides)
