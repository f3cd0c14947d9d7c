"""What a program computed, as JSON: numbers, arrays of any library, text, and containers of them.

A value is a dict of its parts by their names: "" for a plain value, "[0]" or "['loss']" for those of a container.
A part is {"type": ..., "dtype": ..., "shape": [...], "numbers": [...]} or {"type": ..., "text": ...}.
An array with more than LARGEST numbers is divided into BLOCKS; "numbers" are their means, and "digest" stands for all.
"""

import hashlib
import json
import math
import numbers

LARGEST = 100000  # numbers of an array
BLOCKS = 4096
MOST = 5000  # parts of a value, and of a test
LONGEST = 1000  # characters of a text; a longer one has a digest
WHOLE = 2**63  # integers below it are numbers of JSON
DEEPEST = 20  # containers in each other
SPECIAL = {math.inf: "inf", -math.inf: "-inf"}


def describe(value):
    """Return a value as its parts. Raises ValueError for one that is too large."""
    parts = {}
    add(parts, "", value, 0)
    return parts


def add(parts, name, value, depth):
    if len(parts) >= MOST or depth > DEEPEST:
        raise ValueError("a value has more than {} parts, or is nested more than {} times".format(MOST, DEEPEST))
    fields = getattr(type(value), "__dataclass_fields__", None)  # of a dataclass
    if fields is not None:
        value = {field: getattr(value, field) for field in fields if hasattr(value, field)}
    if isinstance(value, dict):
        for key, item in value.items():
            add(parts, "{}[{!r}]".format(name, key), item, depth + 1)
    elif isinstance(value, (list, tuple)) and not is_numeric(value):
        for number, item in enumerate(value):
            add(parts, "{}[{}]".format(name, number), item, depth + 1)
    else:
        parts[name] = part(value)


def is_numeric(values):
    """Return whether a list is one of plain numbers, which is compared as one array."""
    return bool(values) and all(type(value) is float or (type(value) is int and abs(value) < WHOLE) for value in values)


def part(value):
    kind = "{}.{}".format(type(value).__module__, type(value).__name__).replace("builtins.", "")
    if isinstance(value, (list, tuple)):
        return dict(array(list(value), [len(value)]), type=kind, dtype="number")
    if value is None or isinstance(value, (str, bytes, bool)):
        return {"type": kind, "text": text_of(value)}
    if type(value) is int and abs(value) >= WHOLE:
        return {"type": kind, "text": text_of(value)}
    if isinstance(value, numbers.Number) and not hasattr(value, "dtype"):
        return dict(array([value], []), type=kind, dtype="number")
    plain = to_plain(value)
    if plain is None:
        return {"type": kind, "text": text_of(value)}
    items, shape, dtype = plain
    return dict(array(items, shape), type=kind, dtype=dtype)


def text_of(value):
    """Return the text of a value; of a long one the beginning, with a digest of all."""
    text = repr(value)
    if len(text) <= LONGEST:
        return text
    return "{}… ({})".format(text[:LONGEST], hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16])


def digest(content):
    """Return a short text that stands for a JSON value."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def to_plain(value):
    """Return the numbers of an array, its shape and its dtype; None for another object."""
    for method in ("detach", "cpu"):  # of a tensor of PyTorch
        if callable(getattr(value, method, None)):
            value = getattr(value, method)()
    if not hasattr(value, "tolist") and callable(getattr(value, "numpy", None)):  # of one of TensorFlow
        value = value.numpy()
    if not (hasattr(value, "tolist") and hasattr(value, "shape") and hasattr(value, "dtype")):
        return None
    items = list(flat(value.tolist()))
    if not all(isinstance(item, (int, float, complex)) for item in items):
        return None
    return items, [int(size) for size in value.shape], str(value.dtype).replace("torch.", "")


def flat(items):
    if not isinstance(items, (list, tuple)):
        yield items
        return
    for item in items:
        for inner in flat(item):
            yield inner


def array(items, shape):
    if any(isinstance(item, complex) for item in items):
        items = [real for item in items for real in (complex(item).real, complex(item).imag)]
    shown = items
    result = {"shape": shape}
    if len(items) > LARGEST:
        edges = [place * len(items) // BLOCKS for place in range(BLOCKS + 1)]
        blocks = [items[first:last] for first, last in zip(edges, edges[1:])]
        shown = [math.fsum(block) / len(block) for block in blocks if all(map(math.isfinite, block))]
        result["digest"] = hashlib.sha256(repr(items).encode()).hexdigest()[:16]
    result["numbers"] = [number(item) for item in shown]
    return result


def number(item):
    """Return a number as JSON; a text for one that is not finite."""
    if isinstance(item, (bool, int)):
        return int(item) if abs(item) < WHOLE else float(item)
    if math.isnan(item):
        return "nan"
    return SPECIAL.get(item, float(item))
