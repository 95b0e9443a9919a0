"""How figures look, and how they are saved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgtrec._internal.atomic_file import atomic_write
from kgtrec.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "COLUMN", "DASHES", "MARKERS", "check_plot", "figure", "label_panels",
           "legend_above", "marker_places", "save", "series_style", "short", "styled"]  # fmt: skip

# Okabe and Ito's palette without its yellow, which is too pale on white: told apart with any of the
# common colour vision deficiencies, and in a grey print by the dashes and markers that go with it.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

COLUMN = 3.4
"""Width in inches of one column of a two-column page."""

FORMATS = ("pdf", "svg", "png", "eps", "ps")
_SETTINGS = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "legend.fontsize": 7.0,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "axes.grid": True,
    "grid.linewidth": 0.3,
    "grid.color": "#cccccc",
    "axes.axisbelow": True,
    # Fonts as TrueType, which publishers ask for, and text as text in SVG.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "none",
    # The same data give the same bytes.
    "svg.hashsalt": "kgtrec",
    "savefig.dpi": 300,
}


@contextmanager
def styled() -> Iterator[None]:
    """Everything that is drawn inside has kgtrec's look; the user's own settings come back."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_SETTINGS):
        yield


def figure(
    columns: int = 1, rows: int = 1, *, width: float | None = None, height: float = 2.4, **axes: Any
) -> tuple[Figure, Any]:
    """An empty figure and its axes, apart from any window and from pyplot's state.

    Parameters
    ----------
    columns, rows : int
        Grid of panels.
    width : float, optional
        Inches; by default one column of a page a panel, two at most.
    height : float
        Inches of one panel.
    **axes
        For ``Figure.subplots``, such as ``sharey=True``.

    Returns
    -------
    figure : Figure
    axes : Axes, or ndarray of Axes
        As ``Figure.subplots`` gives them.

    Raises
    ------
    UsageError
        matplotlib is not installed.
    """
    _matplotlib()
    from matplotlib.figure import Figure

    wide = width or COLUMN * min(columns, 2)
    made = Figure(figsize=(wide, height * rows), layout="constrained")
    return made, made.subplots(rows, columns, **axes)


def series_style(number: int, marked: bool = False) -> dict[str, Any]:
    """Colour, dashes and marker of the n-th of several series (from 0), as plot arguments.

    Colours come again after seven, with other dashes and markers.
    """
    again = number // len(COLOURS)
    style: dict[str, Any] = {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[(number + again) % len(DASHES)],
    }
    if marked:
        style["marker"] = MARKERS[(number + 2 * again) % len(MARKERS)]
    return style


def marker_places(number: int, points: int, wanted: int = 8) -> tuple[int, int]:
    """First point and step of a series' markers: those of several series that meet stand apart."""
    step = max(1, points // wanted)
    return number * step // len(MARKERS) % step, step


def legend_above(made: Figure, handles: Sequence[Any] = (), **options: Any) -> None:
    """A legend above all panels, never on what they show, in as many columns as there is room for.

    Parameters
    ----------
    made : Figure
        The series of its first panel are named.
    handles : sequence of artists
        What else is to be explained, each with its label.
    **options
        For ``legend``, such as ``title="sparsity"``.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = made.axes[0].get_legend_handles_labels()[0]
    shown: dict[str, Any] = {str(handle.get_label()): handle for handle in (*drawn, *handles)}
    renderer: Any = FigureCanvasAgg(made).get_renderer()
    for columns in range(min(4, len(shown)), 0, -1):
        legend = made.legend(
            list(shown.values()), list(shown), ncols=columns, columnspacing=1.2,
            loc="outside upper center", **options,
        )  # fmt: skip
        if columns == 1 or legend.get_window_extent(renderer).width <= 0.97 * made.bbox.width:
            return
        legend.remove()


def short(name: str, most: int = 28) -> str:
    """A name that leaves room for the figure: cut in its middle where it is long.

    Dollar signs are escaped, or what stands between two would be set as a formula.
    """
    if len(name) > most:
        head = (most - 1) // 2
        name = f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
    return name.replace("$", r"\$")


def label_panels(axes: Any) -> None:
    """(a), (b), ... above the panels of a figure, for its caption to name."""
    panels: list[Axes] = list(axes.flat)
    for number, panel in enumerate(panels):
        title = panel.get_title()
        panel.set_title(f"({chr(97 + number)}) {title}".rstrip(), loc="left")
        if title:
            panel.set_title("")


def check_plot(path: str | os.PathLike[str]) -> None:
    """UsageError if a figure cannot be saved under this name: before the work, not after it."""
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in FORMATS:
        kinds = ", ".join(f".{form}" for form in FORMATS)
        raise UsageError(f"plot file {os.fspath(path)!r}: its name must end in one of {kinds}")
    _matplotlib()


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that its name ends in (.pdf, .svg, .png, .eps, .ps).

    Raises
    ------
    UsageError
        Another ending.
    FileError
        The file cannot be written; an older one of that name stays as it was.
    """
    check_plot(path)
    ending = Path(path).suffix.lower().lstrip(".")
    # No date inside: a figure that is made again differs only if its data do.
    dated = {"pdf": "CreationDate", "ps": "CreationDate", "eps": "CreationDate", "svg": "Date"}
    metadata = {dated[ending]: None} if ending in ("pdf", "svg") else None
    with styled(), atomic_write(path) as out:
        figure.savefig(out, format=ending, metadata=metadata)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UsageError(
            "plots need matplotlib, which is not installed; pip install 'kgtrec[plot]'"
        ) from None
    return matplotlib
