"""The report: one self-contained page of every analysis."""
