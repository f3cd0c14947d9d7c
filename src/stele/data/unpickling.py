"""Plain data out of pickles; nothing that a pickle names is ever called.

A pickle is a program. This reader lets it name only what NumPy arrays are made of, and even for
those it puts in a stand-in that merely keeps what it is given: NumPy's own unpickling code takes
bytes for pointers when a crafted dtype tells it so.
"""

import io
import pickle
import reprlib
from typing import Any

import numpy
from numpy.typing import NDArray

from stele.data.errors import DataError


class Dtype:
    """Stands in for numpy.dtype: keeps the type code, such as ``u1`` or ``O8``."""

    def __init__(self, code: str | bytes = "", *_: object) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Byte order and flags; what we read is bytes or objects, which have neither."""


class Array:
    """Stands in for numpy.ndarray: keeps shape, type code, order and content."""

    def __init__(self, *_: object) -> None:
        self.shape: Any = ()
        self.code, self.fortran, self.content = "", False, None

    def __setstate__(self, state: Any) -> None:
        _, self.shape, dtype, self.fortran, self.content = state
        self.code = dtype.code

    def __repr__(self) -> str:
        return f"{reprlib.repr(self.code)} of shape {reprlib.repr(self.shape)}"


ALLOWED = {
    ("numpy", "ndarray"): "numpy.ndarray",  # only ever an argument, so it need not be callable
    ("numpy", "dtype"): Dtype,
    ("numpy.core.multiarray", "_reconstruct"): Array,
    ("numpy._core.multiarray", "_reconstruct"): Array,
    ("_codecs", "encode"): str.encode,  # how Python 3 writes bytes for Python 2
}


class _Forbidden(Exception):
    pass


# The C Unpickler fills gigabytes when a twenty-byte file stores something under memo number 2^31;
# the pure-Python one keeps a dict. It costs five seconds on IMDB, once.
class _Unpickler(pickle._Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise _Forbidden(reprlib.repr(f"{module}.{name}"))
        return ALLOWED[module, name]


def load(raw: bytes, where: str) -> Any:
    """Lists, dicts, numbers, bytes, text and ``Array`` out of the pickle ``raw``.

    ``where`` names it in errors. DataError if it asks for anything but arrays, or is damaged.
    """
    try:
        return _Unpickler(io.BytesIO(raw), encoding="bytes").load()
    except _Forbidden as problem:
        raise DataError(
            f"{where} is a pickle that asks for {problem}, which no data set needs; nothing of it was run."
        ) from None
    except Exception as problem:  # a damaged pickle can raise nearly anything
        raise DataError(f"{where} is not a whole pickle ({type(problem).__name__}).") from None


def uint8(value: object, shape: tuple[int, int], where: str) -> NDArray[numpy.uint8]:
    """The uint8 matrix that an ``Array`` stands for. DataError if it is anything else."""
    if not isinstance(value, Array) or (value.code, value.shape) != ("u1", shape):
        raise DataError(f"{where} holds {_kind(value)} where uint8 of shape {shape} belongs.")
    if not isinstance(value.content, bytes) or len(value.content) != shape[0] * shape[1]:
        raise DataError(f"{where} holds an array whose bytes do not fill its shape {shape}.")
    order = "F" if value.fortran else "C"
    return numpy.frombuffer(value.content, numpy.uint8).reshape(shape, order=order)


def objects(value: object, count: int, where: str) -> list[Any]:
    """The ``count`` objects of the one-dimensional ``Array``. DataError if it is anything else."""
    if not isinstance(value, Array) or value.shape != (count,):
        raise DataError(f"{where} holds {_kind(value)} where {count} objects belong.")
    if not isinstance(value.content, list) or len(value.content) != count:
        raise DataError(f"{where} holds an array whose objects do not fill its shape ({count},).")
    return value.content


def _kind(value: object) -> str:
    return repr(value) if isinstance(value, Array) else f"a {type(value).__name__}"
