"""Counters for Prometheus."""
