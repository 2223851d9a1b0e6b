"""A report without its pictures."""

from __future__ import annotations

import pytest

from iolens.views.render.figures import Figure
from iolens.views.report.page import ReportFigure


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that look at headings and words alone: figures have titles, and nothing is drawn."""

    def titled(figure: Figure) -> ReportFigure:
        return ReportFigure(figure.title, figure.title, "data:image/svg+xml,", "{}")

    monkeypatch.setattr("iolens.views.report.page.report_figure", titled)
