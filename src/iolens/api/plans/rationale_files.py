"""A design rationale as a document: Markdown, HTML, PDF or JSON, by the suffix of the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from iolens.errors import UsageError

if TYPE_CHECKING:
    from iolens.plans.rationale import Rationale

SUFFIXES: Final = (".md", ".html", ".pdf", ".json")


def check_suffix(path: Path) -> None:
    """Refuse a kind of file that the rationale is not written as."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path}: write the rationale to a file that ends in {', '.join(SUFFIXES)}")


def rationale_markdown(result: Rationale) -> str:
    """The document as one text, without figures."""
    from iolens.views.plan_rationale.chapters import document
    from iolens.views.plan_rationale.markdown import to_markdown

    return to_markdown(document(result))


def write_rationale(result: Rationale, path: str | Path) -> list[Path]:
    """Write the document in the form that the suffix names; the files written, figures of Markdown among them."""
    from iolens.views.plan_rationale.chapters import document
    from iolens.views.render import atomic, json_text

    output = Path(path)
    check_suffix(output)
    suffix = output.suffix.lower()
    if suffix == ".json":
        atomic.write(output, json_text.to_json(result))
    elif suffix == ".html":
        from iolens.views.plan_rationale.html import to_html

        atomic.write(output, to_html(document(result)))
    elif suffix == ".pdf":
        from iolens.views.plan_rationale.pdf import to_pdf

        atomic.write(output, to_pdf(document(result), result.about.made))
    else:
        from iolens.views.plan_rationale.markdown import write

        return write(document(result), output)
    return [output]
