"""How results of `bench_latency` are shown."""
