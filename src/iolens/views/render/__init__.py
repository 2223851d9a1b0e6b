"""From described tables and figures to terminal, files and web pages; knows no analysis."""
