"""Read weights from files and match them with the parameters of a network."""

import functools
import io
import operator
import os
import zipfile
import zlib

import numpy

from stele_worker.models import inputs, safetensors_files
from stele_worker.models.errors import SpecError, WeightsError

last = {}  # of the last ``match`` of this process: "names", {parameter: array}, the "way" of ``pair``, and "guess"
LONGEST_HEADER = 2**17  # bytes; numpy.savez writes 128
HEADERS = {(1, 0): numpy.lib.format.read_array_header_1_0, (2, 0): numpy.lib.format.read_array_header_2_0}


def read_files(model):
    """Return {name: array} of the file ``weights`` or ``pretrained`` of the host's dict; None if it names no file."""
    if model.get("weights"):
        return read_arrays(model["weights"])
    return safetensors_files.read(model["pretrained"]) if model.get("pretrained") else None


def read_arrays(path):
    """Return {name: array} of an .npz file that an arm saved. Raise SpecError if it is not one."""
    try:
        check_sizes(path)
        with numpy.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SpecError("{} cannot be read as an .npz file: {}".format(path, error)) from error


def check_sizes(path):
    """Raise ValueError unless each array has as many bytes as its header says, and the file has all of them.

    So a small file cannot need more memory than its size: numpy.savez compresses nothing.
    """
    with zipfile.ZipFile(path) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if sum(sizes.values()) > os.path.getsize(path):
            raise ValueError("its arrays have {:,} bytes, more than the file".format(sum(sizes.values())))
        for name, size in sizes.items():
            with archive.open(name) as member:
                expected = size_by_header(io.BytesIO(member.read(LONGEST_HEADER)))
            if expected != size:
                raise ValueError("{} has {:,} bytes, and its header says {:,}".format(name, size, expected))


def size_by_header(file):
    """Return the number of bytes that an .npy file has by its header, which is at the beginning of ``file``."""
    version = numpy.lib.format.read_magic(file)
    shape, _, dtype = HEADERS[version](file)
    return file.tell() + functools.reduce(operator.mul, shape, dtype.itemsize)


def of_arm(path, stored):
    """Return the arrays that another arm saved in an .npz file, under the names of ``stored``, an arm's own arrays.

    The names are those of the last ``match``; arrays that only one arm has, or whose shape differs, are left out.
    """
    arrays = read_arrays(path)
    names = last.get("names", {name: name for name in stored})
    return {
        ours: arrays[theirs]
        for ours, theirs in names.items()
        if ours in stored and theirs in arrays and arrays[theirs].shape == stored[ours].shape
    }


def note_checkpoint(converted, arrays):
    """Note that a library converted the ``arrays`` of another arm to the ``converted`` ones: {name: array}.

    Those that are equal in both have names.
    """
    same = [name for name in converted if name in arrays and inputs.compare(converted[name], arrays[name])[1] == 0]
    last.update(names={name: name for name in same}, way="checkpoint", guess=False)


def remark():
    """Return a line about the last ``match`` if it was not by name, else None."""
    pairs = [pair for pair in last.get("names", {}).items() if pair[0] != pair[1]]
    if not pairs or last["way"] == "map":
        return None
    message = "The weights have other names than the model. By their {}, {!r} gets {!r}{}."
    more = " and {} more".format(len(pairs) - 1) if len(pairs) > 1 else ""
    return message.format(last["way"], pairs[0][0], pairs[0][1], more)


def match(shapes, arrays, optional=(), model=None):
    """Return {name: array} for ``shapes``, the {name: shape} of a network in order.

    The arrays are matched as in ``pair``; ``optional`` ones may be missing. ``model`` is the host's dict. WeightsError
    names the first one that does not fit.
    """
    model = model or {}
    names = model.get("weights_map") or {}
    pairs, way = pair(shapes, arrays, optional, names, ordered=bool(model.get("weights")))
    last.update(names=pairs, way=way, guess=way == "order" and has_alternatives(pairs, arrays, names))
    for ours, theirs in pairs.items():
        if tuple(shapes[ours]) != arrays[theirs].shape:
            message = "The weights of {!r} do not fit: the model has shape {}, the file has {} ({!r})."
            raise WeightsError(message.format(ours, tuple(shapes[ours]), arrays[theirs].shape, theirs))
    return {ours: arrays[theirs] for ours, theirs in pairs.items()}


def fit(shapes, arrays, optional=()):
    """Return whether the arrays have the names and the shapes of a network; ``optional`` ones may be missing."""
    return all(tuple(shapes[name]) == arrays[name].shape if name in arrays else name in optional for name in shapes)


def pair(shapes, arrays, optional=(), names=None, ordered=False):
    """Return ({name in ``shapes``: name in ``arrays``}, way).

    "names"   all names are equal, except ``optional`` ones that are missing
    "map"     of a name that the arrays lack, ``names`` has another one
    "order"   of the others, both sides have equally many, with the same shapes in the same order. Only of arrays that
              are ``ordered`` as they were defined: a file may be sorted by name
    "shapes"  each of the others is the only one of its shape; of ``ordered`` arrays among all, because a framework that
              numbers its layers may give an equal name to another one

    Raise WeightsError if none is possible.
    """
    pairs = {name: name for name in shapes if name in arrays}
    by_name = {ours: theirs for ours, theirs in (names or {}).items() if ours in shapes and theirs in arrays}
    pairs.update((ours, theirs) for ours, theirs in by_name.items() if ours not in pairs)
    lacking = [name for name in shapes if name not in pairs and name not in optional]
    if not lacking:
        return pairs, "names" if all(ours == theirs for ours, theirs in pairs.items()) else "map"
    spare = [name for name in arrays if name not in pairs.values()]
    lacking_shapes, spare_shapes = [tuple(shapes[name]) for name in lacking], [arrays[name].shape for name in spare]
    by_order = dict(pairs, **dict(zip(lacking, spare)))
    if ordered and lacking_shapes == spare_shapes and keeps_order(by_order, list(shapes), list(arrays)):
        return by_order, "order"
    others = [array.shape for array in arrays.values()] if ordered else spare_shapes
    if sorted(lacking_shapes) == sorted(spare_shapes) and all(others.count(shape) == 1 for shape in spare_shapes):
        of_shape = {arrays[name].shape: name for name in spare}
        return dict(pairs, **{name: of_shape[tuple(shapes[name])] for name in lacking}), "shapes"
    raise WeightsError(describe_lack(lacking, spare, shapes, arrays))


def has_alternatives(pairs, arrays, names):
    """Return whether arrays that were matched without their names have equal shapes, so that they may be exchanged."""
    unnamed = [theirs for ours, theirs in pairs.items() if theirs not in (ours, names.get(ours))]
    return len({arrays[name].shape for name in unnamed}) < len(unnamed)


def keeps_order(pairs, ours, theirs):
    """Return whether pairs of names are in the same order on both sides."""
    places = [theirs.index(pairs[name]) for name in ours if name in pairs]
    return places == sorted(places)


def describe_lack(lacking, spare, shapes, arrays):
    name = lacking[0]
    message = (
        "The weights lack {!r} of shape {}: they hold {} arrays, the model {}. The model does not have: {}. "
        "Without its name, an array is matched only if it could belong nowhere else."
    )
    rest = ", ".join("{!r} {}".format(each, arrays[each].shape) for each in spare[:3]) or "nothing"
    rest += ", ..." if len(spare) > 3 else ""
    return message.format(name, tuple(shapes[name]), len(arrays), len(shapes), rest)
