"""Bandwidth of a study, case by case (N4, N5)."""
