"""Parse a spec, such as ``package.module:attribute`` or ``timm:resnet18``, and tell what kind of model an object is."""

import difflib
import inspect
import os
from typing import Any, NamedTuple

from stele_worker.models.errors import SpecError

LIBRARIES = ("torchvision", "timm", "keras", "hf", "hf-tiny")
FORMS = (
    "Write package.module:attribute, path/file.py:attribute, torchvision:NAME, timm:NAME, keras:NAME, "
    "hf:TYPE_OR_FOLDER or hf-tiny:TYPE_OR_FOLDER."
)
FRAMEWORKS = {  # by the package of a class; Keras first, for its layers are also classes of its backend
    "keras": "keras",
    "flax": "jax",
    "torch": "torch",
    "paddle": "paddle",
    "tensorflow": "tensorflow",
}
# how people write them
NAMES = {
    "torch": "PyTorch",
    "jax": "JAX",
    "keras": "Keras",
    "tensorflow": "TensorFlow",
    "paddle": "Paddle",
    # of complete recipes
    "numpy": "NumPy",
    "chainer": "Chainer",
    "mxnet_gluon": "MXNet",
}


class Spec(NamedTuple):
    kind: str  # "module", "file", or one of LIBRARIES
    place: str  # module, path or library
    name: str  # attribute, or the library's name of the model


class Source(NamedTuple):
    spec: str
    folder: str
    kind: str  # that of the Spec, or "recipe" for a recipe of the user
    value: Any  # the model, or what makes it
    module: Any  # the user's, or None


def parse(text):
    """Return the Spec of a text. Raise SpecError if the text has none of the FORMS."""
    place, colon, name = text.partition(":")
    if place not in LIBRARIES:
        place, colon, name = text.rpartition(":")
    if not colon or not place or not name:
        raise SpecError("{!r} does not name a model. {}".format(text, FORMS))
    if place in LIBRARIES:
        return Spec(place, place, name)
    return Spec("file" if place.endswith(".py") or os.sep in place else "module", place, name)


def attribute(module, name, text):
    """Return an attribute, which may be dotted. Raise SpecError with the nearest names."""
    value = module
    for part in name.split("."):
        if not hasattr(value, part):
            where = getattr(value, "__name__", name)
            raise SpecError("{!r}: {} has no {!r}.{}".format(text, where, part, nearest(part, dir(value))))
        value = getattr(value, part)
    return value


def place(source):
    """Return ``recipes/spirals/torch.py, line 3``: where ``network`` is."""
    code = getattr(source.value, "__code__", None)
    return source.spec if code is None else "{}, line {}".format(source.spec, code.co_firstlineno)


def nearest(name, names):
    """Return the question "Did you mean ...?" with a space before it, or "" if no name is similar."""
    near = difflib.get_close_matches(name, sorted(names), 3, 0.6)
    return " Did you mean {}?".format(" or ".join(repr(each) for each in near)) if near else ""


def framework_of(value):
    """Return the framework of a model by its class, as in ``stele_worker.frameworks``; None if it is not a model."""
    if isinstance(value, type):
        return None
    if isinstance(value, (tuple, list)):
        return "jax" if len(value) == 2 and all(callable(each) for each in value) else None
    if is_keras2(value):
        return "tensorflow"
    packages = {module.split(".")[0] for module in modules(value)}
    for package, framework in FRAMEWORKS.items():
        if package in packages and not inspect.isroutine(value):
            return framework
    return "tensorflow" if callable(value) and hasattr(value, "trainable_variables") else None


def is_keras2(value):
    """Return whether a model is one of Keras 2, tf.keras or tf_keras. It is a tf.Module; one of Keras 3 is not."""
    return library(value) is not None and "tensorflow.python.module.module" in modules(value)


def library(model):
    """Return the Keras library of a model: "keras", "tf_keras" or "tensorflow.keras"; None without Keras."""
    for module in modules(model):
        if module.split(".")[0] in ("keras", "tf_keras"):
            return module.split(".")[0]
        if module.startswith("tensorflow.python.keras."):  # before TensorFlow 2.6
            return "tensorflow.keras"
    return None


def modules(value):
    return [cls.__module__ for cls in type(value).__mro__]
