"""Core-hours lost to slow I/O."""
