"""Results for people and machines: tables, figures and files; nothing is computed here that is not shown."""
