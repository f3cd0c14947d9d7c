"""Find the arrays, the main output and the loss in the return value of a model of any framework.

An array or a tensor is an object with a ``shape``, so nothing here imports a framework.
"""

from stele_worker.models.inputs import DTYPE, to_array

NAMES = ("logits", "last_hidden_state", "output", "outputs")


def main(output):
    """Return the logits, the last hidden state, or the first array of a tuple or dict that is not a scalar; or None."""
    if hasattr(output, "shape"):
        return output
    held = members(output)
    for name in NAMES:
        if held and hasattr(held.get(name), "shape"):
            return held[name]
    if held is None:
        held = dict(enumerate(output)) if is_sequence(output) else {}
    found = (main(item) for item in held.values())
    return next((item for item in found if item is not None and len(item.shape)), None)


def main_name(output):
    """Return the name that ``named`` gives to the main output; without one, that of the first array."""
    found, chosen = named(output), main(output)
    return next((name for name, array in found.items() if array is chosen), next(iter(found), None))


def named(output):
    """Return {name: array} of all arrays of numbers that a model returns, in order.

    A single array has the name "", an entry of a dict its key, and the second item of a tuple "2". Below those, dots
    separate names; sequences inside of sequences are numbered as one, and so is an object that has items, such as a
    cache of keys and values: releases arrange it differently.
    """
    result = {}
    collect(output, "", result, ())
    return result


def collect(value, path, result, above):
    """Add the arrays in a value to ``result``. ``above`` are the ids of the objects around it."""
    if hasattr(value, "shape"):
        if DTYPE.search(str(getattr(value, "dtype", ""))):
            result[path] = value
        return
    held = members(value)
    if held is None and is_sequence(value):
        items = flat(value) if path else value
        held = {str(number): item for number, item in enumerate(items, 1)}
    for name, item in (held or {}).items() if id(value) not in above else ():
        collect(item, path + "." + name if path else name, result, above + (id(value),))


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


def fetch(array, fetch_real):
    """Return an output as a NumPy array of real numbers, as ``fetch_real`` does; a complex number as two of them."""
    if not is_complex(array):
        return fetch_real(array)
    numbers, _ = to_array(array.resolve_conj() if hasattr(array, "resolve_conj") else array)
    return numbers.view(numbers.real.dtype).reshape(numbers.shape + (2,))
