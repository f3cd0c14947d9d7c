"""Read the description of an environment from a TOML file.

    label           the name in tables
    framework       the folder in ``stele_worker.frameworks`` and the module in ``stele_suite.recipes.<task>``
    imports         top-level modules whose import must succeed
    variables       environment variables of its worker; {folder} is the folder of the built environment
    on_amd          environment variables that its worker has in addition on a processor of AMD
    command         what starts its worker, default ``python -m stele_worker``; {python} is the built interpreter
    python          the interpreter to build it with, such as ==3.8.*; default: it uses the interpreter of the host
    devices         supported devices, of cpu and cuda; default: all
    only_because    why it does not support the other devices
    precisions      supported precisions, of fp32, tf32 and bf16; default: all
    parallel        how it trains on several devices; default: it has no recipe for that
    varies          why two launches with the same seed may differ bit by bit; default: they must not
    [requirements]  the packages to install; the value is the reason for the pin
    [libraries]     system libraries: file = {package = "Debian package", link = "the name that the framework loads"}
    [programs]      programs that must be on PATH; the value is the instruction to install one
    [absent]        unsupported cells, "task" or "task phase", or the phase "time-to-accuracy"; the value is the reason
    [forms]         the form in which it computes a task, if that is not the default form of the Task
    [modes.<id>]    how it executes. The first mode is the environment itself; each other one becomes an environment
                    <name>-<id>, which has these keys of its own, in addition to those above:
                    label (in tables), reason (what the mode changes, and why), devices, phases, variables, programs,
                    absent, varies, on_amd (in place of that above), parallel (how it trains on several devices, and
                    only on several; empty: it cannot),
                    eager (the phases, of train and infer, in which operations are executed one by one, and the tasks in
                    which they are so in both)

``<name>.lock`` in the same folder pins every package with its hash; ``stele env lock`` writes it.
"""

import dataclasses
import functools
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.environments.environment import Environment, Mode, Support
from stele.environments.lockfiles.source import parse_requirement
from stele.errors import SteleError
from stele.text import printable


def read(path: Path) -> tuple[Environment, ...]:
    """Return the environment that a file describes, and one for each of its other modes."""
    return parse(path, files.read_text(path))


@functools.cache
def parse(path: Path, text: str) -> tuple[Environment, ...]:
    """Return the environments that a text describes, which was read from a path."""
    try:
        facts = files.parse_toml(text)
        environment = from_facts(path, facts)
        check_printable(path, environment)
    except (ValueError, TypeError, RecursionError) as error:
        raise SteleError(
            f"{path} does not describe an environment: {error}. It needs at least a label and a framework."
        ) from None
    return environment, *(in_mode(environment, mode) for mode in list(environment.modes)[1:])


def in_mode(environment: Environment, mode: str) -> Environment:
    """Return the environment in another of its modes."""
    facts = environment.modes[mode]
    support, devices, phases = environment.support, facts.get("devices"), facts.get("phases")
    return dataclasses.replace(
        environment,
        name=f"{environment.name}-{mode}",
        label=f"{environment.label}, {facts['label']}",
        mode=mode,
        base=environment.name,
        eager=tuple(facts.get("eager", ())),
        variables={**environment.variables, **facts.get("variables", {})},
        on_amd=facts.get("on_amd", environment.on_amd),
        programs={**environment.programs, **facts.get("programs", {})},
        support=dataclasses.replace(
            support,
            devices=support.devices if devices is None else tuple(devices),
            phases=None if phases is None else tuple(phases),
            parallel=facts.get("parallel", support.parallel),
            several=bool(facts.get("parallel")),
            absent={**support.absent, **facts.get("absent", {})},
        ),
        varies=facts.get("varies", environment.varies),
    )


def check_printable(path: Path, environment: Environment) -> None:
    """Raise SteleError if a name has control characters: it would control the terminals that show it."""
    labels = [("label", mode["label"]) for mode in environment.modes.values()]
    names = [("mode", mode) for mode in environment.modes]
    for what, value in (("name", environment.name), ("label", environment.label), *labels, *names):
        if value != printable(value, keep=""):
            raise SteleError(
                f"{printable(str(path), keep='')} gives its environment a {what} with control characters, "
                f"{value!r}. Remove them."
            )


def check(facts: dict[str, Any]) -> None:
    """Raise ValueError if the value of a key has the wrong type, or is no module, package or command."""
    modes = facts.get("modes")
    # first, because a message about the whole description does not name the mode
    for name, mode in modes.items() if isinstance(modes, dict) else ():
        check_mode(name, mode)
    schema.check_keys(facts, Environment)
    schema.check_keys(facts, Support)
    for module in facts.get("imports", ()):
        if not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(f"imports has {module!r}, which is no module")
    for requirement in facts.get("requirements", ()):
        parse_requirement(requirement)
    for library, value in facts.get("libraries", {}).items():
        if "package" not in value:
            raise ValueError(f"libraries has no package for {library!r}")
    if facts.get("command") == []:
        raise ValueError("command is empty")


def check_mode(name: str, mode: Any) -> None:
    """Raise ValueError if a mode has no label, the wrong type, or a key that no mode has."""
    try:
        schema.convert(mode, Mode)
    except ValueError as error:
        raise ValueError(f"modes.{name}: {error}") from None
    if unknown := set(mode) - set(Mode.__annotations__) - {"label"}:
        raise ValueError(f"modes.{name} has {', '.join(sorted(unknown))}, which no mode has")


def from_facts(path: Path, facts: dict[str, Any]) -> Environment:
    """Return the environment with the content of the TOML file at ``path``."""
    check(facts)
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
    values["support"] = Support(**{name: values.pop(name) for name in Support.__annotations__ if name in values})
    has_lock = "python" in facts and facts.get("requirements")
    values["name"], values["lock"] = path.stem, path.with_suffix(".lock") if has_lock else None
    mode = next(iter(facts.get("modes", {})), None)
    if mode is not None:
        values["mode"], values["eager"] = mode, tuple(facts["modes"][mode].get("eager", ()))
    return Environment(**values)
