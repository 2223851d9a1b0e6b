"""Coefficients of FSU from a centre's own telemetry: limits that targets reach, busy time, latency by size."""
