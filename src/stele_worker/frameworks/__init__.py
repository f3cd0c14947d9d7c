"""Everything that Stele knows of a framework: one folder per framework, with the same names in each.

framework.py           what does not depend on a Task: a subclass of ``base.Framework``
recipe.py              what all of its recipes share: steps, gradients, optimisers
attention.py, images.py    what some of them share: see ``stele_worker.attention``
loader.py, capabilities.py, defaults.py    see the modules of the package with the same names
model.py               the derived recipe of a user's model: see ``stele_worker.models``

A folder's ``__init__`` is empty, so that each of its modules can be imported without the others.
"""

import functools
import importlib
import os
import sys
import traceback

from stele_worker.protocol import SetupError

tuned = True  # whether Stele sets what makes a framework fast: not for a model of the user. Some read it at import
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.lru_cache(maxsize=None)
def load(name):
    """Return the only instance of a framework's class: see ``base.Framework``.

    Raises SetupError if this interpreter lacks a package that the framework's module imports.
    """
    try:
        return importlib.import_module("{}.{}.framework".format(__name__, name)).Framework(name)
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from None


def part(framework, name):
    """Return a module of a framework's folder, such as "loader"; None if it has none."""
    path = "{}.{}.{}".format(__name__, framework, name)
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name in (path, path.rpartition(".")[0]):
            return None
        raise


def missing_package(error):
    """Return the SetupError of a package that a module of Stele imports; None if a package of the release lacks one.

    A missing part of a package is not a missing package: the release may have dropped it.
    """
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    [*_, last] = [path for path in frames if not path.startswith("<frozen")]
    if not error.name or "." in error.name or not last.startswith(PACKAGE + os.sep):
        return None
    message = "The interpreter {} lacks the package {}. Install it there, or name another environment."
    return SetupError(message.format(sys.executable, error.name))
