"""How results of `latency` are shown."""
