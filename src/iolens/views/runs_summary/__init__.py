"""One run on one page: text for the terminal, sections and figures for HTML."""
