"""Read weights from files and match them with the parameters of a network."""

import numpy

from stele_worker.models import safetensors_files
from stele_worker.models.errors import SpecError


def read_files(model):
    """Return {name: array} of the file ``weights`` or ``pretrained`` of the host's dict; None if it names no file."""
    if model.get("weights"):
        with numpy.load(model["weights"], allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    return safetensors_files.read(model["pretrained"]) if model.get("pretrained") else None


def of_arm(path, stored):
    """Return the arrays that another arm saved in an .npz file, under the names of ``stored``, an arm's own arrays.

    As in ``match``, but arrays that only one arm has are left out.
    """
    with numpy.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
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
