"""The design rationale of a plan as a document: Markdown, HTML, PDF."""
