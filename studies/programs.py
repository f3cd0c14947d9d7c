"""Run a program of a folder by its name, as the command ``python -m FOLDER NAME`` does."""

import ast
import runpy
import sys
from pathlib import Path


def main(folder: Path, words: list[str]) -> None:
    """Run the program that the first word names, with the other words; without a word, list the programs."""
    programs = find(folder)
    if words and words[0] in programs:
        path = folder / words[0]
        path = path if path.is_dir() else path.with_suffix(".py")
        sys.argv = [str(path), *words[1:]]
        sys.path[:0] = [str(path.parent), str(folder.parent)]
        runpy.run_path(str(path), run_name="__main__")
        return
    for name, summary in programs.items():
        print(f"{name:20} {summary}")
    if words:
        sys.exit(f"There is no program {words[0]!r}. Name one of these.")


def find(folder: Path) -> dict[str, str]:
    """Return the programs by name, each with the first line of its text. The text says how it is started."""
    found = {}
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/*.py")]):
        name = str(path.relative_to(folder).with_suffix("")).removesuffix("/__main__")
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if f"python -m {folder.name} {name}" in text:
            found[name] = text.partition("\n")[0]
    return found
