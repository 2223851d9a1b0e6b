"""Core-hours lost to slow I/O, by application, project and finding."""
