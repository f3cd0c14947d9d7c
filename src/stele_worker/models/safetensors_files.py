"""Read a .safetensors file: eight bytes of length, a JSON header, the data, which is read last.

Source: github.com/huggingface/safetensors, README.md, "Format".
"""

import json
import os
import stat

import numpy

from stele_worker.models.errors import SpecError

FIELDS = {"dtype", "shape", "data_offsets"}
LONGEST_HEADER = 100 * 10**6  # bytes, as in the library safetensors
BFLOAT16 = "BF16"  # becomes float32
DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    BFLOAT16: "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


def read(path):
    """Return {name: array} of the file after --pretrained. Raise SpecError if it is not valid."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError("it is not a regular file")
        with open(path, "rb") as file:
            header, start = read_header(file)
            check(header, os.fstat(file.fileno()).st_size - start)
            return {name: read_array(file, start, **entry) for name, entry in header.items()}
    except RecursionError:
        raise SpecError(message(path, "its header is nested too deeply")) from None
    except (OSError, ValueError, TypeError, MemoryError) as error:
        raise SpecError(message(path, error)) from error


def message(path, reason):
    text = "--pretrained {} cannot be read as a .safetensors file: {}. Name a file that the library safetensors wrote."
    return text.format(path, reason)


def read_header(file):
    """Return the entries of a file by name, and where their data begins."""
    size, length = os.fstat(file.fileno()).st_size, int.from_bytes(file.read(8), "little")
    if not 0 < length <= min(size - 8, LONGEST_HEADER):
        raise ValueError("its header has {} bytes, but the file has {}".format(length, size))
    header = json.loads(file.read(length).decode())
    if not isinstance(header, dict):
        raise ValueError("its header is not a JSON object")
    header.pop("__metadata__", None)
    return header, 8 + length


def check(header, size):
    """Raise ValueError, which names it, if an array does not fit its bytes, the file, or the other arrays."""
    for name, entry in header.items():
        if not isinstance(entry, dict) or set(entry) != FIELDS:
            raise ValueError("{!r} does not have exactly {}".format(name, ", ".join(sorted(FIELDS))))
    last = 0
    for name, entry in sorted(header.items(), key=lambda pair: pair[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if not is_size(begin) or not is_size(end) or not last <= begin <= end <= size:
            raise ValueError(
                "the bytes {} to {} of {!r} are outside of the file, or those of another array".format(begin, end, name)
            )
        last, count = end, 1
        for length in entry["shape"]:
            if not is_size(length):
                raise ValueError("{!r} has the shape {}".format(name, entry["shape"]))
            count *= length
        if entry["dtype"] not in DTYPES:
            raise ValueError("{!r} has the type {!r}, which is not supported".format(name, entry["dtype"]))
        if count * numpy.dtype(DTYPES[entry["dtype"]]).itemsize != end - begin:
            raise ValueError("{!r} of shape {} has {} bytes".format(name, entry["shape"], end - begin))


def is_size(value):
    return type(value) is int and value >= 0


def read_array(file, start, dtype, shape, data_offsets):
    begin, end = data_offsets
    file.seek(start + begin)
    values = numpy.frombuffer(file.read(end - begin), DTYPES[dtype])
    if dtype == BFLOAT16:  # the upper half of a float32
        values = (values.astype(numpy.uint32) << 16).view(numpy.float32)
    return values.reshape(shape)
