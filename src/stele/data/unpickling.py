"""Read plain data from pickles without calling anything that a pickle names.

A pickle is a program. This reader accepts only the names that NumPy arrays need, and replaces them with classes that
only store their arguments: with a crafted dtype, the unpickling code of NumPy would use bytes as pointers.
"""

import io
import pickle
import reprlib
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.errors import DataError


class Dtype:
    """Replaces numpy.dtype: stores the type code, such as ``u1`` or ``O8``."""

    def __init__(self, code: str | bytes = "", *_: object) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and flags, which bytes and objects do not have."""


class PickledArray:
    """Replaces numpy.ndarray: stores shape, type code, order and content."""

    def __init__(self, *_: object) -> None:
        self.shape: Any = ()
        self.code, self.fortran, self.content = "", False, None

    def __setstate__(self, state: Any) -> None:
        _, self.shape, dtype, self.fortran, self.content = state
        self.code = dtype.code

    def __repr__(self) -> str:
        return f"{reprlib.repr(self.code)} of shape {reprlib.repr(self.shape)}"


ALLOWED = {
    ("numpy", "ndarray"): "numpy.ndarray",  # it is only an argument, so it does not need to be callable
    ("numpy", "dtype"): Dtype,
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("_codecs", "encode"): str.encode,  # Python 3 writes bytes for Python 2 with it
}


class _Forbidden(Exception):
    pass


# The C Unpickler allocates gigabytes if a file of 20 bytes uses memo number 2^31; the pure-Python one uses a dict.
# It takes five seconds for IMDB, once.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Forbidden(reprlib.repr(f"{module}.{name}"))
        return ALLOWED[module, name]


def load(raw: bytes, where: str) -> Any:
    """Return the lists, dicts, numbers, bytes, strings and ``PickledArray`` objects in the pickle ``raw``.

    Errors name the file as ``where``. Raises DataError if the pickle uses any other name, or is damaged.
    """
    try:
        return _Unpickler(io.BytesIO(raw), encoding="bytes").load()
    except _Forbidden as problem:
        raise DataError(
            f"{where} is a pickle that uses {problem}, which no data set needs. Nothing in it was executed."
        ) from None
    except Exception as problem:  # a damaged pickle can raise nearly any exception
        raise DataError(f"{where} is not a complete pickle ({type(problem).__name__}).") from None


def uint8_matrix(value: object, shape: tuple[int, int], where: str) -> NDArray[numpy.uint8]:
    """Return the uint8 matrix in an ``PickledArray``. Raises DataError if it is anything else."""
    if not isinstance(value, PickledArray) or (value.code, value.shape) != ("u1", shape):
        raise DataError(f"{where} contains {_describe(value)}, expected uint8 of shape {shape}.")
    if not isinstance(value.content, bytes) or len(value.content) != shape[0] * shape[1]:
        raise DataError(f"{where} contains an array with the wrong number of bytes for its shape {shape}.")
    order = "F" if value.fortran else "C"
    return numpy.frombuffer(value.content, numpy.uint8).reshape(shape, order=order)


def object_list(value: object, count: int, where: str) -> list[Any]:
    """Return the ``count`` objects in a one-dimensional ``PickledArray``. Raises DataError if it is anything else."""
    if not isinstance(value, PickledArray) or value.shape != (count,):
        raise DataError(f"{where} contains {_describe(value)}, expected {count} objects.")
    if not isinstance(value.content, list) or len(value.content) != count:
        raise DataError(f"{where} contains an array with the wrong number of objects for its shape ({count},).")
    return value.content


def _describe(value: object) -> str:
    return repr(value) if isinstance(value, PickledArray) else f"a {type(value).__name__}"
