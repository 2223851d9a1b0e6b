"""Sums over intervals, targets, days and ticks that several analyses share."""
