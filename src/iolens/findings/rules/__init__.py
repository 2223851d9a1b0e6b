"""The rules, one module each, named after their codes."""
