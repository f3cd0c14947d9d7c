"""setup.cfg and setup.py: the packages that a project installs. A setup.py is parsed and never executed."""

import ast
import configparser

from packaging.utils import canonicalize_name

from stele.environments.lockfiles.requirements import read_included
from stele.environments.lockfiles.source import Lines, Source, Table

ASSIGNED = (ast.Assign, ast.AnnAssign)


def read_setup(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages that a project installs, with those of the selected extras, and its Python versions."""
    extras = source.get(data, "extras_require", dict)
    groups = [source.items(data, "install_requires", str)]
    groups += [source.items(extras, name, str) for name in extras if canonicalize_name(name) in source.extras]
    lines: Lines = []
    for line in (line for group in groups for line in group):
        if line.startswith("file:"):
            names = line.removeprefix("file:").split(",")
            lines += [requirement for name in names for requirement in read_included(source, name.strip(), line)]
        else:
            lines += source.requirement(line)
    return lines, source.get(data, "python_requires", str)


def load_cfg(content: str) -> Table:
    """Return what a setup.cfg says. Raises ValueError if it is not valid."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(content)
    except configparser.Error as error:
        raise ValueError(str(error)) from None

    def listed(text: str) -> Lines:
        lines = text.splitlines() if "\n" in text else text.split(";")
        return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]

    options = dict(parser["options"]) if parser.has_section("options") else {}
    extras = dict(parser["options.extras_require"]) if parser.has_section("options.extras_require") else {}
    return {
        "install_requires": listed(options.get("install_requires", "")),
        "extras_require": {name: listed(text) for name, text in extras.items()},
        "python_requires": options.get("python_requires", ""),
    }


def load_py(content: str) -> Table:
    """Return the literal arguments of the call of setup(), also of ``**table``.

    Raises ValueError if it cannot be parsed, or if install_requires is computed.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, MemoryError) as error:
        raise ValueError(f"it is not valid Python: {error}") from None
    names = constants(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_setup(node.func)]
    keywords = [keyword for call in calls for keyword in call.keywords]
    arguments = ("install_requires", "extras_require", "python_requires")
    values = {keyword.arg: value_of(keyword.value, names) for keyword in keywords if keyword.arg in arguments}
    for keyword in keywords:
        if keyword.arg is None and "install_requires" not in values:
            table = value_of(keyword.value, names)
            values |= {key: table[key] for key in arguments if isinstance(table, dict) and key in table}
    return {key: value for key, value in values.items() if key is not None}


def constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of names that a module sets once, and that no statement seems to change."""
    values: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ASSIGNED) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            values.update({target.id: statement.value for target in targets if isinstance(target, ast.Name)})
    written: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            written.append(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):  # NAMES.append
            written += [node.value.id] * 2
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            written += [name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)] * 2
    return {name: value for name, value in values.items() if written.count(name) == 1}


def is_setup(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return bool(name == "setup")


def value_of(node: ast.expr, names: dict[str, ast.expr], depth: int = 0) -> object:
    """Return the value of a literal, of a name of one, and of a sum of lists."""
    if depth > 20:
        raise ValueError("install_requires is nested too deeply")
    if isinstance(node, ast.Name) and node.id in names:
        return value_of(names[node.id], names, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        both = [value_of(side, names, depth + 1) for side in (node.left, node.right)]
        if all(isinstance(side, list) for side in both):
            return [item for side in both for item in side]  # type: ignore[attr-defined]
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        keys = [str(key.value) for key in node.keys if isinstance(key, ast.Constant)]
        return dict(zip(keys, (value_of(value, names, depth + 1) for value in node.values), strict=True))
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"line {node.lineno}: the value is computed, and Stele does not execute it") from None
    return list(value) if isinstance(value, tuple) else value
