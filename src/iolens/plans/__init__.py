"""Sizing the next system from a reference system's telemetry: pure functions from inputs to typed results."""
