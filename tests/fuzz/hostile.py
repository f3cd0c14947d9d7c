"""Strategies for hostile input: arbitrary JSON and text, and valid content with some of it changed."""

import contextlib
import copy
import json

from hypothesis import strategies as st

from stele.errors import SteleError

TEXT = st.text(max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, -1, 2**31, 2**63, 10**400, 0.0, -0.0, 1e-320, 1e308])
    | st.floats()
    | TEXT
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
# what a parser with recursion or with a limit on digits may fail on
EXTREME = st.sampled_from(["[" * 10_000, '{"a":' * 2_500, "9" * 5000, "1e999", "NaN", '"\\ud800"', ""])


def refuses_or_returns(function, *arguments, **options):
    """Return what the function returns, or None if it raises SteleError. Any other exception fails the test."""
    with contextlib.suppress(SteleError):
        return function(*arguments, **options)


@st.composite
def changed_bytes(draw, content):
    """Draw ``content`` with one to four changes: bytes that are replaced, removed or repeated."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(start + 64, len(content))) | st.just(len(content)))
        new = draw(st.binary(max_size=8) | st.just(content[start:end] * 2))
        content = content[:start] + new + content[end:]
    return content


@st.composite
def changed_text(draw, content):
    """Draw text with one to four changes: characters that are replaced, removed or repeated."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(start + 64, len(content))))
        new = draw(TEXT | st.just(content[start:end] * 2))
        content = content[:start] + new + content[end:]
    return content


@st.composite
def changed_json(draw, value, anything=JSON):
    """Draw a JSON value with one to three changes: a part of it is replaced, removed or added."""
    root = [copy.deepcopy(value)]
    for _ in range(draw(st.integers(1, 3))):
        place, key = draw(st.sampled_from(places(root)))
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "remove" and place is not root:
            del place[key]
        elif change == "add" and isinstance(place, dict):
            place[draw(TEXT)] = draw(anything)
        else:
            place[key] = draw(anything)
    return root[0]


def places(value):
    """Return (container, key) of every part of a JSON value, at most 20 of each container."""
    found = []
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))[:20]
    for key, item in pairs:
        found.append((value, key))
        if isinstance(item, (dict, list)):
            found += places(item)
    return found


def documents(value):
    """Return a strategy for the bytes of a JSON file like the one that contains ``value``."""
    content = json.dumps(value).encode()
    return (
        changed_json(value).map(lambda changed: json.dumps(changed).encode())
        | changed_bytes(content)
        | JSON.map(lambda anything: json.dumps(anything).encode())
        | EXTREME.map(str.encode)
        | st.binary(max_size=50)
    )
