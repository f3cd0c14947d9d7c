"""Charts as Vega-Lite descriptions without data: see ``stele.report.content``. vl-convert draws pictures of some.

On a page, a colour is a variable of the style sheet, which has a value for light and one for dark pages. A picture is
shown on pages of any colour, so its background is transparent, and its text grey.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stele.errors import SteleError
from stele.report.content import Spec

ARMS = {"old": "OLD", "control": "OLD, control", "new": "NEW", "repeat": "NEW, repeat"}
ARM_COLOURS = [f"var(--{name})" for name in ("old", "control", "new", "repeat")]
ARM_SHAPES = ["circle", "triangle-up", "square", "diamond"]
STATUSES = {
    "BROKEN": "var(--fail)",
    "MISSING": "var(--fail)",
    "REGRESSED": "var(--fail)",
    "INCONCLUSIVE": "var(--unsure)",
    "IMPROVED": "var(--pass)",
    "PASS": "var(--pass)",
}
RUNGS = ("exact", "agrees", "near the tolerance", "differs", "not compared")
RUNG_COLOURS = [f"var(--rung-{name})" for name in ("exact", "agrees", "near", "differs", "absent")]
# pixels
ROW = 22
TIMES = {
    "milliseconds": "%H:%M:%S",
    "seconds": "%H:%M:%S",
    "minutes": "%H:%M",
    "hours": "%H:%M",
    "date": "%d %b",
    "day": "%d %b",
    "week": "%d %b",
}
INSTALL = "Charts need vl-convert-python. Install it with: pip install 'pytest-stele[report]'"
# readable on white and on black
GREY, GRID = "#6e7781", "#8c959f40"
PICTURE = {
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": GREY,
        "titleColor": GREY,
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "header": {"labelColor": GREY, "labelFontSize": 13, "labelFontWeight": "bold", "title": None},
    "legend": {"labelColor": GREY, "titleColor": GREY, "labelFontSize": 12, "orient": "bottom"},
    "text": {"color": GREY},
    "range": {"category": ["#4c8bd6", "#d9722b", "#3c9d5b", "#9a6ee0", "#d1545b", "#8a929a", "#b58a1b", "#2f9aa3"]},
}


def load_converter() -> Any:
    """Return the module vl_convert. Raises SteleError, which says what to install, if it is missing."""
    try:
        import vl_convert
    except ImportError as error:
        raise SteleError(f"{INSTALL} ({error})") from None
    return vl_convert


def to_svg(spec: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> str:
    """Return a chart of ``rows`` as an SVG picture. Equal rows give an equal picture."""
    values = [{f"c{number}": value for number, value in enumerate(row)} for row in rows]
    picture = {**spec, "data": {"values": values}, "config": PICTURE}
    return str(load_converter().vegalite_to_svg(picture)) + "\n"


def column(number: int, kind: str, title: str | None, **more: Any) -> Spec:
    """Return the encoding of a column. ``kind`` is quantitative, nominal, ordinal or temporal."""
    return {"field": f"c{number}", "type": kind, "title": title, **more}


def colours(number: int, title: str | None, domain: Sequence[str], values: Sequence[str]) -> Spec:
    return column(number, "nominal", title, scale={"domain": list(domain), "range": list(values)})


def of_groups(groups: Sequence[str], of_arms: Sequence[str]) -> Spec:
    """Return the scale of groups. Arms have the same colours and shapes in every chart."""
    names = list(ARMS.values())
    if set(groups) <= set(names):
        return {"domain": list(groups), "range": [of_arms[names.index(group)] for group in groups]}
    return {"domain": list(groups)}


def tooltip(head: Sequence[str]) -> list[Spec]:
    """Return the encoding that shows every column when the pointer is on a mark."""
    return [{"field": f"c{number}", "title": title} for number, title in enumerate(head)]


def forest(
    head: Sequence[str],
    statuses: Sequence[str],
    *,
    low: int,
    middle: int,
    high: int,
    allowed: Sequence[int],
) -> Spec:
    """Return points with intervals around the line at 1. A line of it is a verdict, a cell and a metric.

    ``allowed`` are the columns of tolerance and margin.
    """
    rows = {"field": "check", "type": "nominal", "title": None, "sort": None}
    ratio = column(middle, "quantitative", "NEW / OLD")
    ratio["scale"] = {"type": "log", "nice": False, "padding": 12}
    present = [status for status in STATUSES if status in statuses]
    status = colours(0, None, present, [STATUSES[status] for status in present])
    ticks = [
        {
            "transform": [{"filter": f"isValid(datum.c{number})"}],
            "mark": {
                "type": "tick",
                "thickness": 2,
                "size": 16,
                "color": "var(--soft)",
                "strokeDash": [1, 0] if head[number] == "margin" else [2, 2],
            },
            "encoding": {"y": rows, "x": {"field": f"c{number}", "type": "quantitative"}},
        }
        for number in allowed
    ]
    return {
        "height": {"step": ROW},
        "transform": [
            {"filter": f"isValid(datum.c{middle})"},
            {"calculate": "datum.c1 + ' ' + datum.c2", "as": "check"},
        ],
        "layer": [
            {"mark": {"type": "rule", "color": "var(--soft)", "aria": False}, "encoding": {"x": {"datum": 1}}},
            *ticks,
            {
                "mark": {"type": "rule", "strokeWidth": 3},
                "encoding": {
                    "y": rows,
                    "x": column(low, "quantitative", ratio["title"]),
                    "x2": {"field": f"c{high}"},
                    "color": status,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"y": rows, "x": ratio, "color": status, "tooltip": tooltip(head)},
            },
        ],
    }


def launches(head: Sequence[str], *, when: int, value: int, group: int, groups: Sequence[str]) -> Spec:
    """Return a point for each launch in the order of time. The legend highlights a group; dragging moves the axes."""
    return {
        "height": 220,
        "params": [
            {"name": "chosen", "select": {"type": "point", "fields": [f"c{group}"]}, "bind": "legend"},
            {"name": "area", "select": {"type": "interval", "zoom": "wheel![event.shiftKey]"}, "bind": "scales"},
        ],
        "mark": {"type": "point", "size": 26, "filled": True, "aria": False},
        "encoding": {
            "x": {
                "field": f"t{when}",
                "type": "temporal",
                "title": "end of the launch (UTC)",
                "scale": {"type": "utc", "padding": 8},
                "axis": {"format": TIMES},
            },
            "y": column(value, "quantitative", head[value], scale={"zero": False, "padding": 8}),
            "color": column(group, "nominal", None, scale=of_groups(groups, ARM_COLOURS)),
            "shape": column(group, "nominal", None, scale=of_groups(groups, ARM_SHAPES)),
            "opacity": {"condition": {"param": "chosen", "value": 0.8}, "value": 0.08},
            "tooltip": tooltip(head),
        },
    }


def warm_up(head: Sequence[str], groups: Sequence[str]) -> Spec:
    """Return a line for each group: step, group, then the 10th, 50th and 90th percentile of its launches."""
    group = column(1, "nominal", None, scale=of_groups(groups, ARM_COLOURS))
    x = column(0, "quantitative", "step", scale={"type": "log", "nice": False}, axis={"labelOverlap": True})
    y = column(3, "quantitative", head[3], scale={"type": "log", "nice": False})
    return {
        "height": 200,
        "layer": [
            {
                "mark": {"type": "area", "opacity": 0.18},
                "encoding": {
                    "x": x,
                    "y": {**y, "field": "c2"},
                    "y2": {"field": "c4"},
                    "color": {**group, "legend": None},
                },
            },
            {
                "mark": {"type": "line", "point": True},
                "encoding": {"x": x, "y": y, "color": group, "tooltip": tooltip(head)},
            },
        ],
    }


def ladder(head: Sequence[str], titles: Sequence[str]) -> Spec:
    """Return a heat map: recipe, rung, status, relative error as text."""
    x = column(1, "ordinal", None, sort=list(titles), axis={"labelAngle": -30, "orient": "top"})
    y = column(0, "nominal", None, sort=None)
    return {
        "height": {"step": ROW + 4},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "var(--back)"},
                "encoding": {"x": x, "y": y, "color": colours(2, None, RUNGS, RUNG_COLOURS), "tooltip": tooltip(head)},
            },
            {
                "transform": [{"filter": "isValid(datum.c3)"}],
                "mark": {"type": "text", "fontSize": 10, "color": "var(--text)"},
                "encoding": {"x": x, "y": y, "text": {"field": "c3"}},
            },
        ],
    }


def ranges(head: Sequence[str], *, name: int, low: int, middle: int, high: int, zero: bool = False) -> Spec:
    """Return a point with a range for each row."""
    y = column(name, "nominal", None, sort=None)
    scale = {"zero": zero, "padding": 12}
    return {
        "height": {"step": ROW},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "color": "var(--old)", "opacity": 0.6},
                "encoding": {
                    "y": y,
                    "x": column(low, "quantitative", head[middle], scale=scale),
                    "x2": {"field": f"c{high}"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "color": "var(--old)", "opacity": 1},
                "encoding": {
                    "y": y,
                    "x": column(middle, "quantitative", head[middle], scale=scale),
                    "tooltip": tooltip(head),
                },
            },
        ],
    }


def history(
    head: Sequence[str],
    low: int | None = None,
    high: int | None = None,
    level: int | None = None,
    step: int | None = None,
) -> Spec:
    """Return a point for each release: release and value. The other columns are those of its interval, level and step.

    A line without steps is drawn through the points. A release without a value is a gap.
    """
    release = column(0, "ordinal", None, sort=None, scale={"type": "band"})
    scale = {"zero": False, "padding": 12}
    value = column(1, "quantitative", head[1], scale=scale)
    layers: list[Spec] = []
    if level is not None:
        # a rule over the width of each release: equal ones join
        across = {"x": {**release, "bandPosition": 0}, "x2": {"field": "c0", "bandPosition": 1}}
        layers.append(
            {
                "mark": {"type": "rule", "strokeWidth": 2, "color": "var(--old)", "opacity": 0.45},
                "encoding": {**across, "y": {**value, "field": f"c{level}"}},
            }
        )
    if step is not None:
        steps = {"transform": [{"filter": f"isValid(datum.c{step})"}]}
        text = {"type": "text", "color": "var(--fail)", "fontWeight": 600, "baseline": "bottom", "dy": -3}
        layers += [
            {
                **steps,
                "mark": {"type": "rule", "color": "var(--fail)", "strokeDash": [3, 3]},
                "encoding": {"x": release},
            },
            {
                **steps,
                "mark": text,
                "encoding": {"x": release, "y": {"value": 0}, "text": {"field": f"c{step}"}},
            },
        ]
    if low is not None:
        layers.append(
            {
                "mark": {"type": "rule", "color": "var(--old)"},
                "encoding": {"x": release, "y": {**value, "field": f"c{low}"}, "y2": {"field": f"c{high}"}},
            }
        )
    if level is None:
        layers.append({"mark": {"type": "line", "color": "var(--old)"}, "encoding": {"x": release, "y": value}})
    point = {"type": "point", "filled": True, "size": 60, "color": "var(--old)", "opacity": 1}
    layers.append({"mark": point, "encoding": {"x": release, "y": value, "tooltip": tooltip(head)}})
    return {"height": 180, "layer": layers}


def contributions(head: Sequence[str], *, name: int, change: int, most: int) -> Spec:
    """Return a bar for each of the first rows: growth to the right, shrinkage to the left."""
    return {
        "height": {"step": ROW},
        "transform": [{"window": [{"op": "row_number", "as": "number"}]}, {"filter": f"datum.number <= {most}"}],
        "mark": {"type": "bar"},
        "encoding": {
            "y": column(name, "nominal", None, sort=None, axis={"labelLimit": 260}),
            "x": column(change, "quantitative", head[change]),
            "color": {
                "condition": {"test": f"datum.c{change} > 0", "value": "var(--new)"},
                "value": "var(--old)",
            },
            "tooltip": tooltip(head),
        },
    }


def scatter(head: Sequence[str], *, x: int, y: int, group: int) -> Spec:
    """Return a point for each row that has both values."""
    scale = {"zero": False, "padding": 12}
    return {
        "height": 220,
        "transform": [{"filter": f"isValid(datum.c{x}) && isValid(datum.c{y})"}],
        "mark": {"type": "point", "size": 50, "filled": True},
        "encoding": {
            "x": column(x, "quantitative", head[x], scale=scale),
            "y": column(y, "quantitative", head[y], scale=scale),
            "color": column(group, "nominal", None),
            "shape": column(group, "nominal", None),
            "tooltip": tooltip(head),
        },
    }


def bars_of_cells(*, row: int, across: int, name: int, low: int, middle: int, high: int, title: str) -> Spec:
    """Return bars with intervals, by name, in a grid. ``row`` and ``across`` are the columns that make the grid."""
    y = column(name, "nominal", None, sort=None)
    bar = {"y": y, "x": column(middle, "quantitative", title)}
    interval = {"y": y, "x": {"field": f"c{low}", "type": "quantitative"}, "x2": {"field": f"c{high}"}}
    return {
        "facet": {"row": column(row, "nominal", None, sort=None), "column": column(across, "nominal", None, sort=None)},
        "spec": {
            "width": 300,
            "height": {"step": 18},
            "layer": [
                {"mark": {"type": "bar", "color": "#4c8bd6"}, "encoding": bar},
                {"mark": {"type": "rule", "color": GREY, "strokeWidth": 2}, "encoding": interval},
            ],
        },
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
    }


def heat_maps(*, name: int, cell: int, across: int, ratio: int, text: int, title: str) -> Spec:
    """Return a heat map for each value of the column ``across``, of ratios by name and cell. 1 is white."""
    x = column(cell, "nominal", None, sort="ascending", axis={"labelAngle": -30, "orient": "top"})
    y = column(name, "nominal", None, sort=None)
    scale = {
        "type": "log",
        "domain": [0.25, 1, 8],
        "range": ["#d9722b", "#f6f8fa", "#4c8bd6"],
        "interpolate": "rgb",
        "clamp": True,
    }
    return {
        "title": {"text": title, "color": GREY},
        "facet": {"column": column(across, "nominal", None, sort=None)},
        "spec": {
            "width": {"step": 56},
            "height": {"step": ROW},
            "layer": [
                {
                    "mark": "rect",
                    "encoding": {
                        "x": x,
                        "y": y,
                        "color": column(ratio, "quantitative", None, scale=scale, legend=None),
                    },
                },
                {
                    "mark": {"type": "text", "color": "black"},
                    "encoding": {"x": x, "y": y, "text": {"field": f"c{text}"}},
                },
            ],
        },
    }


def course(head: Sequence[str], *, group: int, name: int, x: Sequence[int], y: Sequence[int]) -> Spec:
    """Return a line for each group, in the order of its rows: points with their names, and intervals both ways.

    ``x`` and ``y`` are the columns of low, middle and high.
    """
    places = {
        "x": column(x[1], "quantitative", head[x[1]], scale={"type": "log", "nice": False, "padding": 24}),
        "y": column(y[1], "quantitative", head[y[1]], scale={"zero": False, "padding": 24}),
        "color": column(group, "nominal", None, sort=None),
    }
    across = {**places, "x": {**places["x"], "field": f"c{x[0]}"}, "x2": {"field": f"c{x[2]}"}}
    up = {**places, "y": {**places["y"], "field": f"c{y[0]}"}, "y2": {"field": f"c{y[2]}"}}
    text = {"type": "text", "align": "left", "dx": 8, "dy": 4, "angle": 25, "fontSize": 10}
    return {
        "width": 680,
        "height": 440,
        "layer": [
            {
                "mark": {"type": "line", "point": True, "strokeWidth": 1},
                "encoding": {**places, "order": {"value": None}},
            },
            {"mark": "rule", "encoding": across},
            {"mark": "rule", "encoding": up},
            {"mark": text, "encoding": {"x": places["x"], "y": places["y"], "text": {"field": f"c{name}"}}},
        ],
    }
