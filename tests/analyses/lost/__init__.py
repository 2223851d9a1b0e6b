"""Tests of the analysis of the same name."""
