"""A metric over the times at which questions are asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from kgtrec.errors import UsageError
from kgtrec.measures import Measure
from kgtrec.plots.style import figure, legend_above, marker_places, series_style, short, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kgtrec.results.result import Result

__all__ = ["over_time"]

_TICKS = 4


def over_time(results: Mapping[str, Result], metric: str = "mrr") -> Figure:
    """A micro metric of the questions of each time, in the order of time.

    Parameters
    ----------
    results : mapping of str to Result
        By the name in the legend; of questions at a time, of one graph.
    metric : str
        Such as "mrr" or "hits@10"; realistic ranks, all sides that the results hold.

    Raises
    ------
    UsageError
        No results, or questions without a time.
    """
    if not results:
        raise UsageError("no results to draw; give at least one")
    slices = {
        name: result.slice("time", [f"{result.sides[-1]}.realistic.micro.{metric}"]).rows
        for name, result in results.items()
    }
    labels = {
        at: time for each in results.values() for at, time in each.ranks.context_labels.items()
    }
    there = {row[0] for rows in slices.values() for row in rows}
    place = {
        time: x for x, time in enumerate(labels[at] for at in sorted(labels) if labels[at] in there)
    }
    with styled():
        made, axes = figure()
        for number, (name, rows) in enumerate(slices.items()):
            style = series_style(number, marked=True)
            style["markevery"] = marker_places(number, len(rows))
            axes.plot(
                [place[str(row[0])] for row in rows],
                np.array([row[-1] for row in rows], dtype=np.float64),
                label=short(name) + " (sampled)" * results[name].ranks.sampled,
                **style,
            )
        times = list(place)
        ticks = np.unique(np.linspace(0, len(times) - 1, min(_TICKS, len(times))).round())
        axes.set_xticks(ticks, [short(times[int(at)]) for at in ticks])
        axes.set_xlabel("time of the question")
        axes.set_ylabel(Measure.parse(f"both.realistic.micro.{metric}").title)
        legend_above(made)
        return made
