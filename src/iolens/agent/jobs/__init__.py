"""Sampling the nodes of a job when it begins and when it ends; standard library only."""
