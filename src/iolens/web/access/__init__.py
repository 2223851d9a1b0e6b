"""Who may ask the server for what: tokens, sessions, roles, secure headers, and a log of what was done."""
