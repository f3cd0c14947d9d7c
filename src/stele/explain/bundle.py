"""The zip file of ``stele explain --bundle``: what a maintainer upstream needs, who does not have Stele.

ISSUE.md            a prepared issue text
reproduce.py        installs old.txt and new.txt, and compares them
setup.json          what reproduce.py reads: cells, scale, settings and variables of both arms
code/               the network and its training step, with the modules that they import
model/              the file of the user's model, if there is one
explanation.json    operations, and what else differs
launches.json       the raw launches: every step, and the profiles
machine.json        facts about the machine
"""

import ast
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from stele import files, schema
from stele.environments import Environment, packages
from stele.explain import text
from stele.explain.comparison import Comparison
from stele.explain.document import ExplanationFile
from stele.explain.launches import Launch
from stele.measuring import variables
from stele.measuring.settings import Settings
from stele.subjects import Subject
from stele_worker import protocol

PACKAGES = ("stele_worker", "stele_suite")  # of the code in a bundle
SOURCES = Path(protocol.__file__).parents[1]
SCRIPT = Path(__file__).with_name("reproduce.py")
NOT_NEEDED = {"pytest-stele", "pip", "setuptools", "wheel"}  # of the interpreter of the user
EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal contents make equal bundles


class Explanation(NamedTuple):
    """What was compared, and what differs. ``comparisons`` and ``runs`` are by cell, such as ("cnn", "train")."""

    old: Environment
    new: Environment
    settings: Settings
    scale: str
    subject: Subject
    comparisons: dict[tuple[str, str], Comparison]
    runs: Mapping[tuple[str, str], Sequence[Launch]]
    differing: Sequence[str]

    @property
    def document(self) -> ExplanationFile:
        """What is written as JSON."""
        cells = {" ".join(cell): comparison for cell, comparison in self.comparisons.items()}
        return ExplanationFile(self.old.name, self.new.name, cells, tuple(self.differing))


def write(path: Path, explanation: Explanation) -> None:
    """Write the bundle. Raises SteleError if it cannot contain the model."""
    content = contents(explanation)

    def save(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, part in content.items():
                archive.writestr(zipfile.ZipInfo(f"{path.stem}/{name}", EPOCH), part, zipfile.ZIP_DEFLATED)

    files.write_output(path, save)


def contents(explanation: Explanation) -> dict[str, str]:
    """Return the text of each file of the bundle, by name."""
    arms = {"old": explanation.old, "new": explanation.new}
    runs = [run for launches in explanation.runs.values() for launch in launches for run in launch]
    return {
        "ISSUE.md": issue(explanation),
        "reproduce.py": SCRIPT.read_text(encoding="utf-8"),
        "setup.json": to_json(setup(explanation, arms)),
        **{f"{arm}.txt": requirements(environment) for arm, environment in arms.items()},
        "explanation.json": schema.document(explanation.document),
        "launches.json": to_json(runs),
        "machine.json": to_json(runs[0].machine),
        **{f"code/{name}": source for name, source in code(explanation, arms)},
        **{f"model/{name}": text for name, text in explanation.subject.reproduction().items()},
    }


def to_json(content: Any) -> str:
    return json.dumps(schema.to_json(content), indent=1) + "\n"


def setup(explanation: Explanation, arms: dict[str, Environment]) -> dict[str, Any]:
    """Return what reproduce.py reads."""
    subject = explanation.subject
    request = subject.as_request()
    return {
        "cells": [list(cell) for cell in explanation.comparisons],
        "scale": explanation.scale,
        "dtype": "bfloat16" if explanation.settings.precision == "bf16" else "float32",
        "model": request and {**request, "folder": "model"},
        "arms": {
            arm: of_arm(environment, explanation.settings, tuned=subject.tuned) for arm, environment in arms.items()
        },
    }


def of_arm(environment: Environment, settings: Settings, *, tuned: bool) -> dict[str, Any]:
    described = {name: value for name, value in environment.variables.items() if "{folder}" not in value}
    return {
        "framework": environment.framework,
        "settings": {**settings.as_request(tuned=tuned), "mode": environment.mode},
        "variables": {**variables.portable(), **described, **settings.variables()},
        "forms": dict(environment.forms),
    }


def requirements(environment: Environment) -> str:
    """Return the packages of an arm for pip: those of its lock file, with hashes, or else those that are installed."""
    if environment.lock is not None and environment.lock.exists():
        return environment.lock.read_text(encoding="utf-8")
    installed = packages.of_environment(environment)
    return "".join(f"{name}=={version}\n" for name, version in sorted(installed.items()) if name not in NOT_NEEDED)


def code(explanation: Explanation, arms: dict[str, Environment]) -> Iterator[tuple[str, str]]:
    """Yield the path and the source of each module that the script needs."""
    roots = ["stele_worker.measurement", "stele_worker.subjects"]
    tasks = [task.replace("-", "_") for task, _ in explanation.comparisons]
    for environment in arms.values():
        backend = environment.variables.get("KERAS_BACKEND")
        used = [environment.framework, *([backend] if backend else [])]
        roots += [f"stele_worker.frameworks.{name}.{part}" for name in used for part in ("framework", "recipe")]
        roots += [f"stele_suite.recipes.{task}.{environment.framework}" for task in tasks]
    roots += [f"stele_suite.tasks.{task}" for task in tasks]
    imports_code = explanation.subject.as_request() is not None
    if imports_code:
        roots += [f"stele_worker.models.{path.stem}" for path in (SOURCES / "stele_worker/models").glob("*.py")]
        roots += [f"stele_worker.frameworks.{environment.framework}.model" for environment in arms.values()]
    excluded = None if imports_code else "stele_worker.models"
    for module in sorted(closure(roots, excluded)):
        path = source_of(module)
        yield path.relative_to(SOURCES).as_posix(), path.read_text(encoding="utf-8")


def closure(modules: Sequence[str], excluded: str | None) -> set[str]:
    """Return the modules of the worker and of the suite that these import, directly or not, and these themselves.

    ``excluded`` is a package that is imported only in a function that is never called.
    """
    closed: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in closed or not source_of(module).is_file() or (excluded and module.startswith(excluded)):
            continue
        closed.add(module)
        waiting += [module.rpartition(".")[0], *imports(source_of(module))]
    return closed


def imports(path: Path) -> Iterator[str]:
    """Yield the modules of the worker and of the suite that a file may import. Some of the names are no modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in PACKAGES)


def source_of(module: str) -> Path:
    """Return the file of a module of the worker or of the suite, which may not exist."""
    base = SOURCES.joinpath(*module.split("."))
    path = base.with_suffix(".py")
    return path if path.is_file() else base / "__init__.py"


def issue(explanation: Explanation) -> str:
    """Return the prepared issue text, in Markdown."""
    old, new = explanation.old.name, explanation.new.name
    cell, worst = max(explanation.comparisons.items(), key=lambda pair: pair[1].new / pair[1].old)
    run = next(iter(explanation.runs.values()))[0].new
    what = "inference" if cell[1] == "infer" else "training"
    tables = [
        "\n".join(text.lines(f"{' '.join(cell_name)}: {old} to {new}", comparison))
        for cell_name, comparison in explanation.comparisons.items()
    ]
    python = ".".join(str(run.framework.flags.get("python") or "3").split(".")[:2])
    facts = "\n".join(f"- {name}: {value}" for name, value in sorted(schema.to_json(run.machine).items()) if value)
    return ISSUE.format(
        title=f"{what.capitalize()} of {cell[0]} is {text.growth(worst.old, worst.new)} in {new} than in {old}",
        what=what,
        task=cell[0],
        old=old,
        new=new,
        old_ms=f"{1e3 * worst.old:.1f}",
        new_ms=f"{1e3 * worst.new:.1f}",
        python=python,
        recipe=f"code/stele_suite/recipes/{cell[0].replace('-', '_')}/{explanation.new.framework}.py"
        if explanation.subject.as_request() is None
        else "model/",
        tables="\n\n".join(tables),
        differing="\n".join(explanation.differing) or "nothing",
        facts=facts,
    )


ISSUE = """# {title}

A step of {what} of the network `{task}` takes {old_ms} ms in {old}, and {new_ms} ms in {new}.

## How to reproduce it
With Python {python} and pip, in this folder:
```
python{python} reproduce.py
```
The script installs `old.txt` and `new.txt` into two virtual environments, lets both compute the same steps in
turns, and prints the ratio of their times. The network and its training step are in `{recipe}`.

## Time by operation
Milliseconds in one step, under the profiler of the framework. The first line has the times without a profiler.
```
{tables}
```

## What else differs
```
{differing}
```

## The machine
{facts}

All steps of all launches, and the profiles, are in `launches.json`.
"""
