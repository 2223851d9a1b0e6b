"""Lustre's counters for Performance Co-Pilot: the agent that pmcd starts, with the system's Python alone."""
