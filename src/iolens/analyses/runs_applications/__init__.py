"""Application runs in the report of a centre."""
