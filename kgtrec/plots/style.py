"""How figures look, and how they are saved."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kgtrec._internal import arguments
from kgtrec._internal.argument_names import argument
from kgtrec._internal.files import atomic_write
from kgtrec._internal.text import shorten, shorten_names, visible
from kgtrec.errors import UsageError, choose, refuse_if

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Item = TypeVar("Item")

# Okabe and Ito's palette without its yellow, which is too pale on white. The colours differ for
# people with all common colour vision deficiencies; dashes and markers differ in a grey print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

SHADE = 0.2
"""Opacity of a band around a line."""

COLUMN = 3.4
"""Width in inches of one column of a two-column page."""

FORMATS = ("pdf", "svg", "png", "eps", "ps")
_SETTINGS = {
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
def apply_style() -> Iterator[None]:
    """Draw with kgtrec's look in the context; restore the user's own settings at its end."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_SETTINGS | (_current_style.get() or Style()).settings()):
        yield


@dataclass(frozen=True)
class Style:
    """Size, width and font of a figure, as a paper asks.

    - size: Size of the text in points, 4 to 20; ticks and legends are a point smaller.
    - width: Width of a column in inches, 1 to 12.
    - family: "serif", "sans-serif", "monospace" or the name of a font that is installed.
    - text: Form of text in SVG: "fonts" (text stays text) or "outlines", which need no font.
    """

    size: float = 8.0
    width: float = COLUMN
    family: str | None = None
    text: str = "fonts"

    def __post_init__(self) -> None:
        choose("text", self.text, ("fonts", "outlines"))
        size, width = self.size, self.width
        refuse_if(
            (not 4 <= size <= 20, f"the text size is {size:g}; it must be 4 to 20 points"),
            (not 1 <= width <= 12, f"the column width is {width:g}; it must be 1 to 12 inches"),
        )

    @classmethod
    def parse(cls, text: str) -> Style:
        """Read ``size=9,width=3.25,family=serif``; other settings keep their defaults."""
        kinds, chosen = {"size": float, "width": float, "family": str, "text": str}, {}
        for part in text.split(","):
            key, equals, value = (word.strip() for word in part.partition("="))
            if key not in kinds or not equals or not value:
                raise UsageError(
                    f"{argument('style', text)}: {part!r} is not a setting; write "
                    "size=POINTS,width=INCHES,family=FONT,text=outlines, or some of them"
                )
            try:
                chosen[key] = kinds[key](value)
            except ValueError:
                problem = f"{argument('style', text)}: {key} {value!r} is not a number"
                raise UsageError(problem) from None
        style = cls(**chosen)
        style.check_font()
        return style

    def check_font(self) -> None:
        """Refuse a font that is not installed."""
        if self.family in (None, "serif", "sans-serif", "monospace"):
            return
        _matplotlib()
        from matplotlib import font_manager

        try:
            font_manager.findfont(self.family, fallback_to_default=False)
        except ValueError:
            raise UsageError(
                f"font {self.family!r} is not installed; "
                "give another font, or serif, "
                "sans-serif or monospace"
            ) from None

    def settings(self) -> dict[str, Any]:
        """Return the settings of matplotlib for this style."""
        settings: dict[str, Any] = {
            "font.size": self.size,
            "axes.titlesize": self.size,
            "axes.labelsize": self.size,
            "legend.fontsize": self.size - 1,
            "xtick.labelsize": self.size - 1,
            "ytick.labelsize": self.size - 1,
        }
        if self.text == "outlines":
            settings["svg.fonttype"] = "path"
        return settings | ({} if self.family is None else {"font.family": [self.family]})


_current_style: ContextVar[Style | None] = ContextVar("style", default=None)


@contextmanager
def using(style: Style) -> Iterator[None]:
    """Draw and save figures in this style while the context is open."""
    token = _current_style.set(style)
    try:
        yield
    finally:
        _current_style.reset(token)


def figure(
    columns: int = 1, rows: int = 1, *, width: float | None = None, height: float = 2.4, **axes: Any
) -> tuple[Figure, Any]:
    """Return an empty figure and its axes, without any window and without pyplot's state."""
    _matplotlib()
    from matplotlib.figure import Figure

    style = _current_style.get() or Style()
    # A wider figure keeps its proportion to the column; larger text gets more height.
    wide = (width or COLUMN * min(columns, 2)) * style.width / COLUMN
    height *= max(1.0, style.size / Style.size)
    fig = Figure(figsize=(wide, height * rows), layout="constrained")
    return fig, fig.subplots(rows, columns, **axes)


def panel_grid(
    items: Sequence[Item], columns: int, *, titles: Sequence[str] = (), **options: Any
) -> tuple[Figure, list[tuple[Axes, Item]]]:
    """Return a figure with a panel per item, in rows of at most `columns`, and (axes, item) pairs.

    Several panels are lettered (a), (b), ..., so that a caption can name them.
    """
    count, columns = len(items), min(len(items), columns)
    fig, axes = figure(columns, -(-count // columns), squeeze=False, **options)
    for unused in axes.flat[count:]:
        unused.remove()
    panels = [*zip(axes.flat, items, strict=False)]
    for number, (panel, _) in enumerate(panels):
        title = titles[number] if titles else ""
        if count > 1:
            panel.set_title(f"({chr(97 + number)}) {title}".rstrip(), loc="left")
        else:
            panel.set_title(title)
    return fig, panels


def require(data: Sized, items: str) -> None:
    """Raise UsageError if there is nothing to draw; `items` names the data."""
    if not len(data):
        raise UsageError(f"no {items} to draw; give at least one")


def require_type(data: object, kind: type[Item], name: str, source: str) -> Item:
    """Return an argument; UsageError if it is not of the type that `source` returns."""
    if isinstance(data, kind):
        return data
    raise UsageError(
        f"{argument(name, type(data).__name__)} cannot be drawn; pass what {source} returns"
    )


def require_values(data: object, kind: type[Item], name: str, source: str) -> Mapping[str, Item]:
    """Return a mapping; UsageError unless it has values, all of the type that `source` returns."""
    if not isinstance(data, Mapping):
        raise UsageError(
            f"{argument(name, type(data).__name__)} cannot be drawn; pass a mapping of names to "
            f"what {source} returns"
        )
    for value in data.values():
        require_type(value, kind, name, source)
    return data


def require_items(data: object, kind: type[Item], name: str, source: str) -> list[Item]:
    """Return a list of items, or of the only one; UsageError unless `source` returns their type."""
    items = data if isinstance(data, Sequence) and not isinstance(data, str) else [data]
    return [require_type(item, kind, name, source) for item in items]


def series_style(number: int, marked: bool = False, points: int = 0) -> dict[str, Any]:
    """Return colour, dashes and marker of a series or model (from 0), the same in all figures.

    Colours repeat after seven, with other dashes and markers. `charts.js` of the report page has
    the same dashes. A line of many `points` has eight markers, apart from those of other series.
    """
    n_repeats = number // len(COLOURS)
    style: dict[str, Any] = {
        "color": COLOURS[number % len(COLOURS)],
        "linestyle": DASHES[(number + n_repeats) % len(DASHES)],
    }
    if marked or points:
        style["marker"] = MARKERS[(number + 2 * n_repeats) % len(MARKERS)]
    if points:
        step = max(1, points // 8)
        style["markevery"] = number * step // len(MARKERS) % step, step
    return style


def draw_lines(
    axes: Axes,
    rows: Iterable[tuple[Any, ...]],
    *,
    marked: bool = False,
    spaced: bool = False,
    **look: Any,
) -> None:
    """Draw a line per row: label, x, y, and perhaps both ends of a band around it.

    Markers are at every point, or `spaced`: at eight points of a line.
    """
    for number, (label, x, y, *band) in enumerate(rows):
        style = series_style(number, marked or spaced, len(x) if spaced else 0) | look
        axes.plot(x, y, label=label, **style)
        if band:
            axes.fill_between(x, *band, color=style["color"], alpha=SHADE, linewidth=0)


def legend_above(
    fig: Figure, handles: Sequence[Any] = (), *, series: bool = True, **options: Any
) -> Figure:
    """Add a legend above all panels, in as many columns as fit, and return the figure.

    Entries are in drawing order, row by row; then come the further `handles`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = _find_labelled(fig.axes[0]) if series else []
    shown: dict[str, Any] = {str(handle.get_label()): handle for handle in (*drawn, *handles)}
    renderer: Any = FigureCanvasAgg(fig).get_renderer()
    for columns in range(min(4, len(shown)), 0, -1):
        labels = by_rows([*shown], columns)
        legend = fig.legend(
            [shown[label] for label in labels],
            [str(number) for number in range(len(shown))],
            ncols=columns,
            columnspacing=1.2,
            loc="outside upper center",
            **options,
        )
        for text, label in zip(legend.get_texts(), labels, strict=True):
            text.set_text(label)  # matplotlib leaves out labels that begin with "_"
        if columns == 1 or legend.get_window_extent(renderer).width <= 0.97 * fig.bbox.width:
            break
        legend.remove()
    # More than a few lines of names get height of their own; the panels keep theirs.
    rows = -(-len(shown) // columns)
    size = (_current_style.get() or Style()).size - 1
    fig.set_figheight(fig.get_figheight() + max(0, rows - LEGEND_ROWS) * 1.5 * size / 72)
    return fig


LEGEND_ROWS = 3
"""Lines of a legend for which a figure has space."""


def by_rows(entries: Sequence[Item], columns: int) -> list[Item]:
    """Order entries for a legend that matplotlib fills by columns, so that they read by rows."""
    return [entry for column in range(columns) for entry in entries[column::columns]]


_UNNAMED = re.compile(r"_(child|container)\d+|_nolegend_|")
"""Labels that matplotlib itself gives to artists."""


def _find_labelled(axes: Axes) -> list[Any]:
    """Return the lines, areas and bars with a label, in drawing order."""
    artists: list[Any] = [*axes.lines, *axes.patches, *axes.collections, *axes.containers]
    return [artist for artist in artists if not _UNNAMED.fullmatch(str(artist.get_label()))]


def range_patch(label: str) -> Any:
    """Return the legend's entry for grey bands around lines."""
    from matplotlib.patches import Patch

    return Patch(facecolor="#888888", alpha=0.3, label=label)


def name_rows(axes: Axes, names: Sequence[str], label: str) -> None:
    """Name the rows of a panel, the first on top."""
    axes.set_yticks(range(len(names)), names)
    axes.set(ylim=(len(names) - 0.5, -0.5), ylabel=label)


def metric_title(metric: str) -> str:
    """Return the heading of a metric; a user's own function keeps its name."""
    from kgtrec.measures import Measure

    try:
        return Measure.parse(f"both.realistic.micro.{metric}").title
    except UsageError:
        return metric


def bare(axes: Axes) -> None:
    """Remove frame, grid and ticks."""
    axes.grid(False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def label_ends(axes: Axes, names: Sequence[str], heights: Iterable[float]) -> None:
    """Name the first lines at their right ends, so that readers need no legend."""
    size = (_current_style.get() or Style()).size - 1
    figure = axes.get_figure(root=True)
    assert figure is not None
    low, high = axes.get_ylim()
    # The panel is about two thirds of the figure's height; names keep a line's distance.
    gap = (high - low) * 1.1 * size / (72 * figure.get_figheight() * 0.65)
    ends = sorted((float(y), number) for number, y in enumerate(heights))
    positions = _spread_apart([y for y, _ in ends], gap, low, high + gap / 2)
    for (_, number), position in zip(ends, positions, strict=True):
        axes.annotate(
            names[number],
            (1.0, position),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=series_style(number)["color"],
            annotation_clip=False,
        )


def _spread_apart(positions: Sequence[float], gap: float, low: float, top: float) -> list[float]:
    """Move ascending positions at least a gap apart; close ones spread about their middle."""
    groups: list[tuple[float, list[float]]] = []  # lowest position, all positions
    for position in positions:
        group, first = [position], max(low, min(position, top))
        while groups and first < groups[-1][0] + gap * len(groups[-1][1]):
            group = groups.pop()[1] + group
            wide = gap * (len(group) - 1)
            first = max(low, min(sum(group) / len(group) - wide / 2, top - wide))
        groups.append((first, group))
    return [first + gap * k for first, group in groups for k in range(len(group))]


def short(name: str, most: int = 28) -> str:
    """Return a single name for a figure; a long one loses its middle. See also `short_names`."""
    return _escape(shorten(name, most))


def short_names(names: Iterable[str], most: int | None = None) -> list[str]:
    """Return names that a figure shows together; long ones keep what differs between them.

    By default they have at most 28 characters; 22 if there are so many that the lines of a legend
    should have two.
    """
    names = [*names]
    most = most or (28 if len(names) <= LEGEND_ROWS else 22)
    return [_escape(name) for name in shorten_names(names, most)]


def _escape(name: str) -> str:
    """Escape dollar signs: matplotlib takes text between two for a formula."""
    return name.replace("$", r"\$")


def check_plot(path: str | os.PathLike[str]) -> str:
    """Return the format of a figure's file; UsageError for other names, before the work."""
    arguments.require_type("path", path, (str, os.PathLike), arguments.PATH)
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in FORMATS:
        kinds = ", ".join(f".{form}" for form in FORMATS)
        raise UsageError(f"plot file {os.fspath(path)!r}: its name must end in one of {kinds}")
    _matplotlib()
    return ending


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that its name ends in (.pdf, .svg, .png, .eps, .ps).

    Raises
    ------
    UsageError
        Another ending.
    FileError
        The file cannot be written; an older one of that name stays as it was.
    """
    ending = check_plot(path)
    # No date inside: the same data give the same file.
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        # Names from files may hold what no font and no XML has.
        text.set_text(visible(text.get_text(), keep="\n"))
    # Encoders report a full disk by errors of their own, without its cause.
    drawn = BytesIO()
    with apply_style():
        figure.savefig(drawn, format=ending, metadata=undated.get(ending))
    with atomic_write(path) as out:
        out.write(drawn.getbuffer())


_LAST_SECOND = 253_402_300_799  # of the year 9999, the last that Python's dates have


def _matplotlib() -> Any:
    """Import matplotlib; UsageError if it is missing, or a variable would make it fail."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "0")
    if not (seconds.isascii() and seconds.isdigit() and int(seconds[:20]) <= _LAST_SECOND):
        raise UsageError(
            f"the environment variable SOURCE_DATE_EPOCH is {shorten(repr(seconds), 60)}, not "
            "a number of seconds since 1970; unset it or give one"
        )
    try:
        import matplotlib
    except ValueError:
        backend = shorten(repr(os.environ.get("MPLBACKEND", "")), 60)
        raise UsageError(
            f"matplotlib refuses the environment variable MPLBACKEND, {backend}; unset it"
        ) from None
    except ImportError:
        raise UsageError(
            "plots need matplotlib, which is not installed; pip install 'kgtrec[plot]'"
        ) from None
    return matplotlib
