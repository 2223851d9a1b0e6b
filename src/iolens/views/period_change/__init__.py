"""What changed against the period before, in the report."""
