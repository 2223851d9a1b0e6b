"""Pages of `iolens serve` as HTML: the shell, and blocks of what an answer shows, in the style of the report."""
