"""Names: packages that conda, or a repository of source code, calls otherwise than PyPI, and names in any text."""

import re

from packaging.utils import canonicalize_name

RENAMED = {  # conda's name: PyPI's name
    "pytorch": "torch", "pytorch-cpu": "torch", "pytorch-gpu": "torch", "torchtriton": "triton",
    "pyg": "torch-geometric", "pytorch-scatter": "torch-scatter", "pytorch-sparse": "torch-sparse",
    "tensorflow-cpu": "tensorflow", "tensorflow-gpu": "tensorflow", "opencv": "opencv-python",
    "py-opencv": "opencv-python", "matplotlib-base": "matplotlib", "seaborn-base": "seaborn",
    "dask-core": "dask", "pytables": "tables", "msgpack-python": "msgpack", "brotli-python": "brotli",
    "brotlipy": "brotli", "python-tzdata": "tzdata", "python-xxhash": "xxhash", "python-graphviz": "graphviz",
    "python-flatbuffers": "flatbuffers", "pyarrow-core": "pyarrow", "py-xgboost": "xgboost",
}  # fmt: skip
BUILDS = {"pytorch-cuda": "torch", "tensorflow-base": "tensorflow"}  # conda's packages that choose a build


def pypi_name(name: str) -> str:
    """Return the normalized name on PyPI of a package of PyPI or of conda."""
    plain = canonicalize_name(name)
    return RENAMED.get(plain) or BUILDS.get(plain) or plain


def known_name(name: str, names: re.Pattern[str]) -> str | None:
    """Return the normalized name of a package, which PyPI or conda calls so, if it is one of these ``names``."""
    plain = canonicalize_name(name)
    return next((candidate for candidate in (plain, pypi_name(plain)) if names.fullmatch(candidate)), None)


def spelled(names_of_pypi: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern that finds packages with these names in a text; its group ``name`` is the spelling there.

    It finds the names of PyPI, of conda and of files such as ``jaxlib-0.10.1-cp311-cp311-linux_x86_64.whl``.
    """
    others = [name for name, package in {**RENAMED, **BUILDS}.items() if names_of_pypi.fullmatch(package)]
    names = "|".join([names_of_pypi.pattern, *others]).replace("-", "[-_]")
    return re.compile(rf"(?<![\w.-])(?P<name>{names})(?:(?![\w-]|\.\w)|(?=-\d))", re.I)
