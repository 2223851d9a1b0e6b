"""Figure descriptions drawn into a page of ReportLab: lines stay lines and text stays text, in the page's own fonts.

Matplotlib lays the figure out and calls this renderer for each stroke.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.transforms import Transform
from reportlab.platypus import Flowable

from iolens.views.render import figures
from iolens.views.render.matplotlib_figure import draw_with, size_pt

CAPS: Final = {"butt": 0, "round": 1, "projecting": 2}
JOINS: Final = {"miter": 0, "round": 1, "bevel": 2}
BOLD_FROM: Final = 600


class FigureOnPage(Flowable):  # type: ignore[misc]
    """A figure of at most this width and height, in the middle of the column; `fonts` are regular and bold."""

    def __init__(self, figure: figures.Figure, fonts: tuple[str, str], most: tuple[float, float]) -> None:
        super().__init__()
        self.figure = figure
        self.fonts = fonts
        self.most = most
        self.scale = 1.0

    def wrap(self, available_width: float, available_height: float) -> tuple[float, float]:
        """The space it takes."""
        width, height = size_pt(self.figure)
        self.scale = min(self.most[0] / width, self.most[1] / height)
        self.inset = (available_width - self.scale * width) / 2.0
        return available_width, self.scale * height

    def draw(self) -> None:
        """Draw it where the page is now."""
        self.canv.saveState()
        self.canv.translate(self.inset, 0)
        self.canv.scale(self.scale, self.scale)
        draw_with(self.figure, PageRenderer(self.canv, self.fonts, size_pt(self.figure)))
        self.canv.restoreState()


class PageRenderer(RendererBase):
    """Matplotlib's strokes on a ReportLab canvas; one pixel is one point, y goes up."""

    def __init__(self, canvas: Any, fonts: tuple[str, str], size: tuple[float, float]) -> None:
        super().__init__()
        self.canvas = canvas
        self.fonts = fonts
        self.size = size

    def flipy(self) -> bool:
        """No: y goes up."""
        return False

    def get_canvas_width_height(self) -> tuple[float, float]:
        """In points."""
        return self.size

    def draw_path(
        self,
        gc: GraphicsContextBase,
        path: Path,
        transform: Transform,
        rgbFace: Any = None,
    ) -> None:
        """Fill and stroke."""
        stroked = gc.get_linewidth() > 0 and gc.get_rgb()[3] > 0
        if not stroked and rgbFace is None:
            return
        self._begin(gc)
        if rgbFace is not None:
            self.canvas.setFillColorRGB(*rgbFace[:3], alpha=_opacity(gc, rgbFace))
        outline = self._outline(path, transform)
        self.canvas.drawPath(outline, stroke=int(stroked), fill=int(rgbFace is not None))
        self.canvas.restoreState()

    def draw_image(
        self, gc: GraphicsContextBase, x: float, y: float, im: Any, transform: Transform | None = None
    ) -> None:
        """Pixels, where a figure has more points or cells than strokes are good for."""
        from PIL import Image
        from reportlab.lib.utils import ImageReader

        height, width = im.shape[:2]
        self._begin(gc)
        picture = ImageReader(Image.fromarray(np.ascontiguousarray(im[::-1])))
        self.canvas.drawImage(picture, x, y, width, height, mask="auto")
        self.canvas.restoreState()

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """One line of text that can be searched and copied."""
        self._begin(gc)
        red, green, blue, _ = gc.get_rgb()
        self.canvas.setFillColorRGB(red, green, blue, alpha=gc.get_alpha())
        self.canvas.translate(x, y)
        self.canvas.rotate(angle)
        self.canvas.setFont(self.fonts[_is_bold(prop)], prop.get_size_in_points())
        self.canvas.drawString(0, 0, s)
        self.canvas.restoreState()

    def _begin(self, gc: GraphicsContextBase) -> None:
        """Pen and clip of one stroke; the caller restores the state."""
        canvas = self.canvas
        canvas.saveState()
        clip = gc.get_clip_rectangle()
        if clip is not None:
            window = canvas.beginPath()
            window.rect(clip.x0, clip.y0, clip.width, clip.height)
            canvas.clipPath(window, stroke=0, fill=0)
        red, green, blue, _ = gc.get_rgb()
        canvas.setStrokeColorRGB(red, green, blue, alpha=gc.get_alpha())
        canvas.setLineWidth(gc.get_linewidth())
        canvas.setLineCap(CAPS[str(gc.get_capstyle())])
        canvas.setLineJoin(JOINS[str(gc.get_joinstyle())])
        offset, dashes = gc.get_dashes()
        canvas.setDash(np.asarray(dashes if dashes is not None else (), dtype=float).tolist(), offset or 0)

    def _outline(self, path: Path, transform: Transform) -> Any:
        outline = self.canvas.beginPath()
        here = (0.0, 0.0)
        for points, code in path.iter_segments(transform):
            if code == Path.MOVETO:
                outline.moveTo(*points)
            elif code == Path.LINETO:
                outline.lineTo(*points)
            elif code == Path.CURVE4:
                outline.curveTo(*points)
            elif code == Path.CURVE3:
                outline.curveTo(*_cubic(here, points))
            elif code == Path.CLOSEPOLY:
                outline.close()
                continue
            here = (float(points[-2]), float(points[-1]))
        return outline


def _cubic(start: tuple[float, float], points: Any) -> tuple[float, ...]:
    """A curve with one control point as one with two: PDF knows no other."""
    (x0, y0), (x1, y1, x2, y2) = start, points
    return (
        x0 + 2.0 / 3.0 * (x1 - x0),
        y0 + 2.0 / 3.0 * (y1 - y0),
        x2 + 2.0 / 3.0 * (x1 - x2),
        y2 + 2.0 / 3.0 * (y1 - y2),
        x2,
        y2,
    )


def _opacity(gc: GraphicsContextBase, face: Any) -> float:
    return float(face[3]) if len(face) > 3 and not gc.get_forced_alpha() else float(gc.get_alpha())


def _is_bold(prop: FontProperties) -> bool:
    weight = prop.get_weight()
    return weight in ("bold", "heavy", "black", "semibold") if isinstance(weight, str) else weight >= BOLD_FROM
