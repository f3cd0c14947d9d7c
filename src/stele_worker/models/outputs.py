"""Find the arrays, the main output and the loss in the return value of a model of any framework.

An array or a tensor is an object with a ``shape``, so nothing here imports a framework.
"""

import numpy

from stele_worker.models.inputs import DTYPE, WHOLE, to_array

NAMES = ("logits", "last_hidden_state", "output", "outputs")
NUMBERS = (bool, int, float, complex)
TEXTS = (str, bytes, type(None))


def main(output):
    """Return the logits, the last hidden state, or the first array of a tuple or dict that is not a scalar; or None."""
    if hasattr(output, "shape"):
        return output
    items = members(output)
    for name in NAMES:
        if items and hasattr(items.get(name), "shape"):
            return items[name]
    if items is None:
        items = dict(enumerate(output)) if is_sequence(output) else {}
    arrays = (main(item) for item in items.values())
    return next((item for item in arrays if item is not None and len(item.shape)), None)


def main_name(output):
    """Return the name that ``named`` gives to the main output; without one, that of the first array."""
    arrays, chosen = named(output), main(output)
    return next((name for name, array in arrays.items() if array is chosen), next(iter(arrays), None))


def named(output):
    """Return {name: array} of all arrays of numbers that a model returns, in order.

    A single array has the name "", an entry of a dict its key, and the second item of a tuple "2". Below those, dots
    separate names; sequences inside of sequences are numbered as one, and so is an object that has items, such as a
    cache of keys and values: releases arrange it differently.
    """
    return {path: value for path, value, _ in leaves(output) if is_numeric(value)}


def plain(output):
    """Return ({name: value}, names) of what a model returns beside arrays, named as in ``named``.

    The values are NumPy arrays of numbers and of lists of numbers, and texts that stand for all others. The second are
    the names, with their types, of what cannot be compared: objects of other classes, and what they hold but arrays.
    """
    result, ignored = {}, []
    for path, value, opaque in leaves(output):
        if opaque:
            ignored.append("{} ({})".format(path, opaque).lstrip())
        elif isinstance(value, NUMBERS + (list, tuple)):
            result[path] = numpy.array(value)
        elif isinstance(value, TEXTS):
            result[path] = repr(value)
        elif not is_numeric(value):
            result[path] = repr(numpy.asarray(value).tolist())
    return result, sorted(set(ignored))


def is_numeric(value):
    """Return whether a value is an array of numbers."""
    return hasattr(value, "shape") and bool(DTYPE.search(str(getattr(value, "dtype", ""))))


def leaves(value, path="", above=(), holder=None):
    """Yield (path, leaf, type) of arrays, numbers, lists of numbers, texts and None, in order; type is then None.

    Of what cannot be compared, the type is the name of its class. ``above`` are the ids of the objects around a value.
    ``holder`` is (path, name) of the object of a class around it: what a class keeps beside arrays is its own.
    """
    is_leaf = isinstance(value, NUMBERS + TEXTS) or is_list_of_numbers(value)
    if hasattr(value, "shape"):
        yield path, value, None if is_numeric(value) or is_array_of_texts(value) else type(value).__name__
    elif is_leaf and holder is None:
        yield path, value, None
    elif is_leaf:
        if value is not None:
            yield holder[0], value, holder[1]
    elif id(value) not in above:
        parts, kind = members(value), type(value)
        if parts is None and not is_sequence(value):
            yield (holder or (path,))[0], value, (holder or (path, kind.__name__))[1]
            return
        if holder is None and not is_structure(value):
            holder = path, kind.__name__
        if parts is None:
            items = flat(value) if path else value
            parts = {str(number): item for number, item in enumerate(items, 1)}
        for name, item in parts.items():
            for leaf in leaves(item, path + "." + name if path else name, above + (id(value),), holder):
                yield leaf


def is_array_of_texts(value):
    try:
        array = numpy.asarray(value)
    except Exception:  # of an array that NumPy has no type for
        return False
    return array.dtype.kind in "US" or all(isinstance(item, TEXTS) for item in array.ravel().tolist())


def is_structure(value):
    """Return whether a value only arranges others: a dict, a list, a tuple or a dataclass."""
    kinds = ("keys", "_fields", "__dataclass_fields__")
    return isinstance(value, (list, tuple)) or any(hasattr(value, kind) for kind in kinds)


def is_list_of_numbers(value):
    """Return whether a value is a list or a tuple of numbers, or of such lists of one length."""
    if not isinstance(value, (list, tuple)) or hasattr(value, "_fields") or not value:
        return False
    if not all(isinstance(item, NUMBERS) or is_list_of_numbers(item) for item in value):
        return False
    try:
        return numpy.array(value).dtype.kind in WHOLE + "fc"
    except ValueError:  # the lists have different lengths
        return False


def members(value):
    """Return {name: value} of a dict, a named tuple or an object; None if it has no names."""
    if hasattr(value, "keys"):
        return {str(name): value[name] for name in value}
    if hasattr(value, "_fields"):
        return {name: getattr(value, name) for name in value._fields}
    if is_sequence(value) or callable(value) or not hasattr(value, "__dict__"):
        return None
    return {name: item for name, item in vars(value).items() if not name.startswith("_")}


def is_sequence(value):
    """Return whether a value has items without names, which can be read more than once."""
    if isinstance(value, (str, bytes)) or hasattr(value, "__next__") or hasattr(value, "shape"):
        return False
    return hasattr(value, "__iter__") and not hasattr(value, "keys") and not hasattr(value, "_fields")


def flat(items):
    """Yield the items of nested sequences, without None."""
    for item in items:
        if is_sequence(item):
            yield from flat(item)
        elif item is not None:
            yield item


def loss(output):
    """Return the entry "loss" of an output, or its scalar; None if there is neither."""
    if hasattr(output, "shape"):
        return output if len(output.shape) == 0 else None
    if hasattr(output, "keys"):
        return output.get("loss")
    named_loss = getattr(output, "loss", None)
    if named_loss is not None or not isinstance(output, (tuple, list)):
        return named_loss
    return next((item for item in output if hasattr(item, "shape") and len(item.shape) == 0), None)


def is_complex(array):
    return "complex" in str(array.dtype)


def is_exact(array):
    """Return whether a fetched output has no rounding: whole numbers and texts."""
    return isinstance(array, str) or array.dtype.kind in WHOLE


def fetch(array, fetch_real):
    """Return an output as a NumPy array of real numbers, as ``fetch_real`` does; a complex number as two of them."""
    if not is_complex(array):
        return fetch_real(array)
    numbers, _ = to_array(array.resolve_conj() if hasattr(array, "resolve_conj") else array)
    return numbers.view(numbers.real.dtype).reshape(numbers.shape + (2,))
