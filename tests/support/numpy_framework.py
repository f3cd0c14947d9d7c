"""A framework of NumPy arrays for tests."""

from stele_worker.frameworks.numpy.framework import Framework


def framework(**names):
    """Return a new framework, in which these attributes and methods are replaced."""
    result = Framework("numpy")
    vars(result).update(names)
    return result
