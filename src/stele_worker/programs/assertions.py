"""What plain assertions of tests compare: the values go to a function before they are compared."""

import functools
import importlib.util
import os
import sys

import pytest

from stele_worker import is_own
from stele_worker.models.errors import is_in_project

# functions of modules whose first argument is what a test computed
FUNCTIONS = {
    "numpy.testing": (
        "assert_allclose",
        "assert_almost_equal",
        "assert_approx_equal",
        "assert_array_almost_equal",
        "assert_array_almost_equal_nulp",
        "assert_array_equal",
        "assert_array_max_ulp",
        "assert_equal",
    ),
    "torch.testing": ("assert_close",),
    "chex": ("assert_trees_all_close", "assert_trees_all_equal"),
}


def watch(record, folder):
    """From now on, call ``record(name, value, place)`` for what assertions in files in ``folder`` compare."""
    record = functools.partial(note, record, folder)
    sys.meta_path.insert(0, Finder(record))
    for name in FUNCTIONS:
        if name in sys.modules:
            replace(sys.modules[name], record)
    pytest.approx = recording_approx(pytest.approx, record)


class Finder:
    """Replaces the functions of a module when it is imported; it finds no module itself."""

    def __init__(self, record):
        self.record, self.searching = record, False

    def find_spec(self, name, path=None, target=None):
        if name not in FUNCTIONS or self.searching:
            return None
        self.searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.searching = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                replace(module, self.record)

            spec.loader.exec_module = exec_module
        return spec


def replace(module, record):
    for name in FUNCTIONS[module.__name__]:
        function = getattr(module, name, None)
        if function is not None:
            setattr(module, name, recording(function, name, record))


def recording(function, name, record):
    """Return a function that records its first argument if the user's code calls it."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        __tracebackhide__ = True
        record(name, args[0] if args else kwargs.get("actual"))
        return function(*args, **kwargs)

    return call


def recording_approx(approx, record):
    """Return a ``pytest.approx`` that records what is compared with it."""

    @functools.wraps(approx)
    def call(*args, **kwargs):
        expected = approx(*args, **kwargs)
        kind = type(expected)

        class Approx(kind):
            __hash__ = None

            def __eq__(self, actual):
                record("approx", actual)
                return kind.__eq__(self, actual)

            def __ne__(self, actual):
                return not self == actual

        Approx.__name__ = kind.__name__
        expected.__class__ = Approx
        return expected

    return call


def note(record, folder, name, value):
    """Record a value with the place of the frame of the user that compares it. This never fails a test."""
    frame = sys._getframe(2)
    path = frame.f_code.co_filename
    if not is_own(path) and os.path.isabs(path) and is_in_project(path, folder):
        record(name, value, "{}:{}".format(path, frame.f_lineno))
