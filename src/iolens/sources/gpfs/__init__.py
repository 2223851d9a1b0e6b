"""Spectrum Scale: mmperfmon, and lists of the policy engine."""
