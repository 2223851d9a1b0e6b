"""Jobs in the report of a centre."""
