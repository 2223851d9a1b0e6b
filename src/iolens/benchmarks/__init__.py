"""Benchmarks that iolens drives itself; their results are rows of `benchmark_runs` like any other."""
