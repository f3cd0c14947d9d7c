"""``stele doctor``: what this machine has, what it lacks, and which differences it can detect, on one screen."""

import importlib.util
import os
import platform
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import config, data, environments, files, schema
from stele.commands import options, screen
from stele.commands.calibrate import FOLDER, MINUTES
from stele.commands.options import NoOptions
from stele.environments import Environment
from stele.environments.state import State
from stele.errors import SteleError
from stele.gate.advice import advise
from stele.measuring import devices, machine, progress, speed
from stele.measuring.conditions import Monitor
from stele.measuring.machine import Machine
from stele.measuring.settings import Settings
from stele.measuring.speed import Speed
from stele.text import printable

WIDTH, INDENT = 80, 10
LEAST_FREE = 10 * 2**30  # bytes; an environment has up to 5 GiB
TOOLS = {"git": "--changed", "Rscript": "r-keras", "julia": "knet"}
CALIBRATE = "unknown. Measure it on the idle machine with: stele calibrate"


def add(commands: Any) -> None:
    about = "show what this machine has, what it lacks, and which differences it can detect"
    command = commands.add_parser("doctor", help=about, description=about)
    options.declare(command, doctor, NoOptions)


def doctor(_: NoOptions) -> int:
    """Print one screen. Returns 0: nothing that is lacking is an error until it is used."""
    with progress.waiting("looking at this machine"):
        sections = list(examine(machine.facts()))
    screen.print_lines(line for title, text, most in sections for line in lines(title, text, most))
    return 0


def lines(title: str, text: str, most: int) -> list[str]:
    """Return a section as at most ``most`` lines of a terminal with 80 columns; a narrower one has more."""
    width = min(shutil.get_terminal_size().columns, WIDTH)
    start = f"{title:{INDENT}}"
    allowed = most if width == WIDTH else None
    wrapped = textwrap.wrap(
        printable(text, keep=""),
        width,
        initial_indent=start,
        subsequent_indent=" " * INDENT,
        max_lines=allowed,
        placeholder=" …",
    )
    return wrapped or [start.rstrip()]


def examine(facts: Machine) -> Iterator[tuple[str, str, int]]:
    """Yield the title and the text of each section, and how many lines it may have."""
    yield "gate", "ready: stele gate OLD NEW builds what it compares", 1
    yield "machine", describe_machine(facts), 2
    settings = Settings(device="cpu", threads=1, malloc="steady")
    monitor = Monitor(settings)
    yield "python", describe_python(speed.measure()), 1
    conditions = monitor.conditions()
    try:
        yield from describe_environments()
    except SteleError as error:
        yield "broken", str(error), 3
    yield "tools", describe_tools(), 2
    yield "data", or_problem(describe_data), 2
    yield "cache", or_problem(lambda: describe_cache(config.current().cache)), 2
    for cell in detectable(facts):
        yield "detects", cell, 1
    for message in list(advise(facts, [conditions], settings))[:1]:
        yield "advice", message, 2


def or_problem(describe: Callable[[], str]) -> str:
    """Return what a section says, or what is wrong."""
    try:
        return describe()
    except SteleError as error:
        return str(error)
    except OSError as error:
        return files.describe(error)


def describe_environments() -> Iterator[tuple[str, str, int]]:
    """Yield the sections about environments, as ``examine`` does."""
    states = {environment: environments.state(environment) for environment in environments.described().values()}
    first = {environment: state for environment, state in states.items() if environment.base is None}
    ready = [
        f"{environment.name} {state.version or ''}".strip()
        for environment, state in first.items()
        if state.status == "ready"
    ]
    yield "ready", ", ".join(ready) or "no environment", 2
    for title, text in lacking(first):
        yield title, text, 2


def describe_machine(facts: Machine) -> str:
    memory = "unknown memory" if facts.memory is None else f"{facts.memory / 2**30:.0f} GiB"
    gpus = ", ".join(gpu.get("name", "GPU") for gpu in facts.gpus) or "no GPU"
    processor = f"{facts.processor or 'unknown processor'}, {facts.processors} processors"
    load = "" if facts.load is None else f", load {facts.load:.1f}"
    return f"{processor}, {memory}, {gpus}, {facts.system}{load}"


def describe_python(python: Speed) -> str:
    steady = "changes: other work slows it" if python.changes else "is steady"
    return f"{platform.python_version()}, {platform.system()}; its speed {steady}"


def lacking(states: dict[Environment, State]) -> Iterator[tuple[str, str]]:
    """Yield what can be built or installed, what needs something else first, and what is broken."""
    no_gpu = devices.first() is None
    missing = {
        environment.name: state.reason
        for environment, state in states.items()
        if state.status == "missing" and not (environment.needs_gpu and no_gpu)
    }
    built = [name for name, reason in missing.items() if reason.startswith("not built")]
    installed = [name for name, reason in missing.items() if "pip install" in reason]
    others = [name for name in missing if name not in built and name not in installed]
    if installed:
        yield "missing", f"pip install 'pytest-stele[NAME]': {', '.join(installed)}"
    if built:
        yield "missing", f"stele env make NAME: {', '.join(built)}"
    if others:
        yield "missing", f"see stele env list: {', '.join(others)}"
    broken = [environment.name for environment, state in states.items() if state.status == "broken"]
    if broken:
        yield "broken", f"see stele env list: {', '.join(broken)}"


def describe_tools() -> str:
    present = [name for name in TOOLS if shutil.which(name)]
    present += ["asv"] if importlib.util.find_spec("asv") else []
    absent = [f"{name} ({use})" for name, use in TOOLS.items() if name not in present]
    absent += [] if "asv" in present else ["asv (releases)"]
    return f"{', '.join(present) or 'none'}" + (f"; not found: {', '.join(absent)}" if absent else "")


def describe_data() -> str:
    folder = data.data_folder(config.current())
    if folder is not None:
        return f"from STELE_DATA, {folder}"
    return "STELE_DATA is not set: data are downloaded"


def describe_cache(folder: Path) -> str:
    """Return the free space for environments."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    few = ", too little for several environments" if free < LEAST_FREE else ""
    writable = "" if os.access(existing, os.W_OK) else ", cannot be written: set STELE_CACHE"
    return f"{free / 2**30:.0f} GiB free{few}{writable}, {folder}"


def detectable(facts: Machine) -> list[str]:
    """Return what the last ``stele calibrate`` on this machine found, for at most three cells."""
    for path in sorted(FOLDER.glob("*.json"), reverse=True):
        try:
            content = schema.unwrap(schema.read(path))
            if machine.fingerprint(schema.convert(content["machine"], Machine)) == machine.fingerprint(facts):
                day = f"{datetime.fromtimestamp(path.stat().st_mtime):%Y-%m-%d}"
                return [describe_cell(cell, calibration, day) for cell, calibration in content["cells"].items()][:3]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # damaged, or of another program: an older one may do
    return [CALIBRATE]


def describe_cell(cell: str, calibration: Mapping[str, float | None], day: str) -> str:
    smallest = calibration["smallest"]
    what = "no slow-down" if smallest is None else f"a slow-down of {smallest:.1%}"
    return f"{what} of {cell} in {MINUTES:g} minutes (calibrated {day})"
