"""A window against the time before it, for the first page of a report."""
