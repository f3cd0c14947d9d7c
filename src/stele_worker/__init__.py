"""The worker side: runs in a framework's own interpreter. Needs Python 3.6, numpy and one framework."""

import os

import stele_suite

FOLDERS = tuple(os.path.dirname(os.path.abspath(path)) for path in (__file__, stele_suite.__file__))


def is_own(path):
    """Return whether a file is of Stele's own code that runs in a worker."""
    return path.startswith(tuple(folder + os.sep for folder in FOLDERS))
