"""Charts as Vega-Lite descriptions without data: see ``stele.report.content``.

A colour is a variable of the page's style sheet, which has a value for light and one for dark pages.
"""

from collections.abc import Sequence
from typing import Any

ARMS = {"old": "OLD", "control": "OLD, control", "new": "NEW", "repeat": "NEW, repeat"}
ARM_COLOURS = [f"var(--{name})" for name in ("old", "control", "new", "repeat")]
ARM_SHAPES = ["circle", "triangle-up", "square", "diamond"]
STATUSES = {
    "BROKEN": "var(--fail)", "MISSING": "var(--fail)", "REGRESSED": "var(--fail)", "INCONCLUSIVE": "var(--unsure)",
    "IMPROVED": "var(--pass)", "PASS": "var(--pass)",
}  # fmt: skip
RUNGS = ("exact", "agrees", "near the tolerance", "differs", "not compared")
RUNG_COLOURS = [f"var(--rung-{name})" for name in ("exact", "agrees", "near", "differs", "absent")]
ROW = 22  # pixels
TIMES = {
    "milliseconds": "%H:%M:%S",
    "seconds": "%H:%M:%S",
    "minutes": "%H:%M",
    "hours": "%H:%M",
    "date": "%d %b",
    "day": "%d %b",
    "week": "%d %b",
}

Spec = dict[str, Any]


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
    listed = [status for status in STATUSES if status in statuses]
    status = colours(0, None, listed, [STATUSES[one] for one in listed])
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
                "encoding": {"y": rows, "x": column(low, "quantitative", ratio["title"]),
                             "x2": {"field": f"c{high}"}, "color": status},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": {"y": rows, "x": ratio, "color": status, "tooltip": tooltip(head)},
            },
        ],
    }  # fmt: skip


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
            "x": {"field": f"t{when}", "type": "temporal", "title": "end of the launch (UTC)",
                  "scale": {"type": "utc", "padding": 8}, "axis": {"format": TIMES}},
            "y": column(value, "quantitative", head[value], scale={"zero": False, "padding": 8}),
            "color": column(group, "nominal", None, scale=of_groups(groups, ARM_COLOURS)),
            "shape": column(group, "nominal", None, scale=of_groups(groups, ARM_SHAPES)),
            "opacity": {"condition": {"param": "chosen", "value": 0.8}, "value": 0.08},
            "tooltip": tooltip(head),
        },
    }  # fmt: skip


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
                "encoding": {"x": x, "y": {**y, "field": "c2"}, "y2": {"field": "c4"},
                             "color": {**group, "legend": None}},
            },
            {
                "mark": {"type": "line", "point": True},
                "encoding": {"x": x, "y": y, "color": group, "tooltip": tooltip(head)},
            },
        ],
    }  # fmt: skip


def ladder(head: Sequence[str], titles: Sequence[str]) -> Spec:
    """Return a heat map: recipe, rung, status, relative error as text."""
    x = column(1, "ordinal", None, sort=list(titles), axis={"labelAngle": -30, "orient": "top"})
    y = column(0, "nominal", None, sort=None)
    return {
        "height": {"step": ROW + 4},
        "layer": [
            {
                "mark": {"type": "rect", "stroke": "var(--back)"},
                "encoding": {"x": x, "y": y, "color": colours(2, None, RUNGS, RUNG_COLOURS),
                             "tooltip": tooltip(head)},
            },
            {
                "transform": [{"filter": "isValid(datum.c3)"}],
                "mark": {"type": "text", "fontSize": 10, "color": "var(--text)"},
                "encoding": {"x": x, "y": y, "text": {"field": "c3"}},
            },
        ],
    }  # fmt: skip


def ranges(head: Sequence[str], *, name: int, low: int, middle: int, high: int, zero: bool = False) -> Spec:
    """Return a point with a range for each row."""
    y = column(name, "nominal", None, sort=None)
    scale = {"zero": zero, "padding": 12}
    return {
        "height": {"step": ROW},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "color": "var(--old)", "opacity": 0.6},
                "encoding": {"y": y, "x": column(low, "quantitative", head[middle], scale=scale),
                             "x2": {"field": f"c{high}"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "color": "var(--old)", "opacity": 1},
                "encoding": {"y": y, "x": column(middle, "quantitative", head[middle], scale=scale),
                             "tooltip": tooltip(head)},
            },
        ],
    }  # fmt: skip


def history(head: Sequence[str]) -> Spec:
    """Return a line over releases: release and value."""
    return {
        "height": 180,
        "mark": {"type": "line", "point": True, "color": "var(--old)"},
        "encoding": {
            "x": column(0, "ordinal", None, sort=None),
            "y": column(1, "quantitative", head[1], scale={"zero": False}),
            "tooltip": tooltip(head),
        },
    }


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
                "condition": {"test": f"datum.c{change} > 0", "value": "var(--new)"}, "value": "var(--old)",
            },
            "tooltip": tooltip(head),
        },
    }  # fmt: skip


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
