"""Files of the user: ``recipes/<task>/<framework>.py`` and ``tasks/<task>.py`` beside ``recipes``.

They are read here as text, and never executed: that happens in the worker alone.
"""

import ast
from pathlib import Path

from stele import files
from stele.text import unknown_message
from stele_suite import tasks

DERIVED = ("jax", "keras", "paddle", "tensorflow", "torch")
OTHERS = ("chainer", "mxnet_gluon", "numpy")  # which measure, but derive nothing
FRAMEWORKS = (*DERIVED, *OTHERS)
STEPS = ("load", "gradients", "training_step", "inference_step", "stored")
PACKAGES = {"paddle": "paddlepaddle", "mxnet_gluon": "mxnet"}
MODULES = {"mxnet_gluon": "mxnet"}


def is_recipe(path: Path) -> bool:
    """Return whether a path has the form ``recipes/<task>/<framework>.py``."""
    return path.suffix == ".py" and path.parent.parent.name == "recipes"


def task_name(path: Path) -> str:
    """Return the task of a recipe file; ``recipes/cnn`` if a built-in task has the same name."""
    name = path.parent.name
    return f"recipes/{name}" if name in tasks.NAMES else name


def task_file(path: Path) -> Path:
    """Return the path that the task file of a recipe has, whether it exists or not."""
    return path.parents[2] / "tasks" / f"{path.parent.name}.py"


def defined_names(path: Path) -> set[str] | None:
    """Return the names that a file defines or imports at its top level; None if it is not valid Python."""
    try:
        tree = ast.parse(files.read_bytes(path, files.LARGEST_TEXT))
    except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):  # the last two: nested too deeply
        return None
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names


def why_unusable(path: Path) -> str | None:
    """Return why nothing can be measured of a recipe file, or None. Invalid Python is left to the worker."""
    names, framework = defined_names(path), path.stem
    if framework not in FRAMEWORKS:
        return unknown_message("framework", framework, FRAMEWORKS)
    if names is None or "*" in names:
        return None
    if "network" not in names:
        return "it does not define the function network(task)."
    lacking = [name for name in STEPS if name not in names]
    if framework not in DERIVED and lacking:
        return (
            f"nothing can be derived for {framework}, only for {', '.join(DERIVED)}. Define also: {', '.join(lacking)}."
        )
    return None


def has_weights(path: Path) -> bool:
    """Return whether the task file of a recipe defines ``weights``, which recipes of two frameworks share."""
    return "weights" in (defined_names(task_file(path)) or ())
