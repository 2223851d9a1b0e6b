"""Rates of metadata operations that mdtest measured."""
