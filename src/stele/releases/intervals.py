"""Intervals of numbers, in the key ``intervals`` of asv's result files: {metric: {cell: [low, high]}}.

asv ignores this key. Its own statistics would have another effect: asv weights the points of a line by them when it
looks for steps, and intervals from few launches differ by chance.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stele import files

KEY = "intervals"

Pair = tuple[float, float]
Intervals = Mapping[str, Mapping[str, Pair]]  # by metric and cell


def of_content(content: Mapping[str, Any] | None) -> dict[str, dict[str, Pair]]:
    """Return the intervals in a result file, without entries that are not two finite numbers."""
    by_metric = (content or {}).get(KEY)
    if not isinstance(by_metric, dict):
        return {}
    return {
        metric: {cell: (pair[0], pair[1]) for cell, pair in cells.items() if is_pair(pair)}
        for metric, cells in by_metric.items()
        if isinstance(cells, dict)
    }


def is_pair(value: Any) -> bool:
    """Return whether a value from a file is a list of two finite numbers."""
    return isinstance(value, list) and len(value) == 2 and all(map(is_finite, value))


def is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def merge(earlier: Intervals, replaced: Mapping[str, Mapping[str, Any]], new: Intervals) -> Intervals:
    """Return the earlier intervals, without those of ``replaced`` numbers, and the new ones."""
    return {
        metric: {
            **{cell: pair for cell, pair in earlier.get(metric, {}).items() if cell not in replaced.get(metric, ())},
            **new.get(metric, {}),
        }
        for metric in {**earlier, **new}
    }


def write(path: Path, intervals: Intervals) -> None:
    """Add the intervals to a result file that asv has just written."""
    if any(intervals.values()):
        content = json.loads(path.read_text(encoding="utf-8"))
        files.write_text(path, json.dumps({**content, KEY: intervals}) + "\n")
