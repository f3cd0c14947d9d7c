"""Read weights from files and match them with the parameters of a network."""

import functools
import io
import operator
import os
import zipfile
import zlib

import numpy

from stele_worker.models import safetensors_files
from stele_worker.models.errors import SpecError

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
        sizes = {one.filename: one.file_size for one in archive.infolist()}
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

    As in ``match``, but arrays that only one arm has are left out.
    """
    arrays = read_arrays(path)
    pairs = [(name, name) for name in stored if name in arrays]
    if len(pairs) < len(stored) == len(arrays):
        pairs = list(zip(stored, arrays))
    return {ours: arrays[theirs] for ours, theirs in pairs if arrays[theirs].shape == stored[ours].shape}


def match(shapes, arrays, optional=()):
    """Return {name: array} for ``shapes``, the {name: shape} of a network in order.

    Arrays are matched by name if all names are present except ``optional`` ones. Otherwise they are matched by
    order, because some frameworks number layers in a process. SpecError names the first one that does not fit.
    """
    if all(name in arrays or name in optional for name in shapes):
        pairs = [(name, name) for name in shapes if name in arrays]
    elif len(shapes) == len(arrays):
        pairs = list(zip(shapes, arrays))
    else:
        lacking = next(name for name in shapes if name not in arrays)
        message = "The weights lack {!r} of shape {}: they hold {} arrays, the model {}. They begin with {}."
        begin = ", ".join("{} {}".format(name, arrays[name].shape) for name in list(arrays)[:3])
        raise SpecError(message.format(lacking, tuple(shapes[lacking]), len(arrays), len(shapes), begin))
    for ours, theirs in pairs:
        if tuple(shapes[ours]) != arrays[theirs].shape:
            message = "The weights of {!r} do not fit: the model has shape {}, the file has {} ({!r})."
            raise SpecError(message.format(ours, tuple(shapes[ours]), arrays[theirs].shape, theirs))
    return {ours: arrays[theirs] for ours, theirs in pairs}
