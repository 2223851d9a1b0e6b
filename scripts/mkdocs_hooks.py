"""Hooks of the documentation site: files beside docs/ that pages link to become part of it.

On the repository's own pages a link to the changelog is `../CHANGELOG.md`; on the site the file lies beside the pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parent.parent
PAGES = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
FILES = ("LICENSE",)
LINKED = re.compile(r"\]\(\.\./([^)#\s]+)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages beside docs/, what they link to, and every other file outside docs/ that a page links to."""
    from mkdocs.structure.files import File

    names = {*PAGES, *FILES}
    for page in files.documentation_pages():
        names.update(LINKED.findall(page.content_string))
    for name in sorted(names):
        files.append(File.generated(config, name, content=_content(REPOSITORY / name)))
    return files


def _content(path: Path) -> str | bytes:
    return path.read_text("utf-8") if path.suffix == ".md" else path.read_bytes()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as they are on the site."""
    if page.file.src_uri in PAGES:
        return markdown.replace("](docs/", "](")
    return LINKED.sub(r"](\1", markdown)
