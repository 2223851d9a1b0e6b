"""Coefficients of FSU: fitted from benchmark runs, stored, and applied by target and date."""
