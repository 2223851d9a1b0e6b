"""Which stripes and blocks a measured grid recommends (N8)."""
