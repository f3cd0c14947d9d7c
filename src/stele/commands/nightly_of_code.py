"""``stele nightly PACKAGE==VERSION ... -- pytest tests``: gate newer releases with code of the user.

OLD are the pinned versions, and in NEW one is a newer release. So each release has a control beside it: OLD again.
"""

import dataclasses
import functools
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from stele import files
from stele.commands import gate, options
from stele.commands.gate import Finished, GateOptions, JudgementOptions, PairOptions
from stele.commands.options import ModelOptions, ProcessOptions, ProgramOptions
from stele.commands.releases import MeasuringOptions, SyncOptions
from stele.errors import SteleError
from stele.measuring import content, machine
from stele.measuring.progress import say
from stele.releases import index, watch
from stele.releases.watch import Candidate, Judged, State
from stele.report import releases as pages
from stele.subjects.errors import SubjectError
from stele.text import counted, printable, without_passwords

FOLDER = Path(".stele/nightly")


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """Where the results are written."""

    site: Path = Path(".stele/site")
    markdown: Path = Path(".stele/nightly.md")
    json: Path | None = None


@dataclass(frozen=True, kw_only=True)
class CodeOptions:
    """The pins, as the frameworks of ``sync``, and the code that judges newer releases."""

    sync: SyncOptions
    last: int
    published: PublishOptions
    model: ModelOptions
    program: ProgramOptions
    process: ProcessOptions = field(default_factory=ProcessOptions)
    phase: str | None = None
    budget: float = 86400.0  # seconds

    @functools.cached_property
    def pins(self) -> dict[str, str]:
        return watch.parse_pins(self.sync.frameworks)

    def gate(self, new: str, budget: float) -> GateOptions:
        """Return the options of the gate of the pins and ``new`` requirements."""
        pair = PairOptions(
            old=watch.as_requirements(self.pins),
            new=new,
            cells=options.CellOptions(phase=self.phase),
            model=self.model,
            program=self.program,
            process=self.process,
        )
        chosen = GateOptions(pair=pair, judged=JudgementOptions(budget=budget))
        return replace(chosen, typed=gate.words_of(chosen))


def is_chosen(sync: SyncOptions, model: ModelOptions, program: ProgramOptions) -> bool:
    """Return whether code of the user judges the releases. Raises SteleError for pins without code."""
    has_code = bool(model.spec or program.program or program.function or program.asv)
    pinned = [text for text in sync.frameworks if "==" in text]
    if pinned and not has_code:
        raise SteleError(
            f"{pinned[0]} is what your code uses. Name the code, too: stele nightly {pinned[0]} -- pytest tests"
        )
    return has_code


def check(chosen: CodeOptions, measuring: MeasuringOptions, *, default: MeasuringOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    if not chosen.sync.frameworks:
        raise SteleError("Name what your code uses now, with its version: stele nightly jax==0.10.1 -- pytest tests")
    for name in ("launches", "scale", "error", "mode"):
        if getattr(measuring, name) != getattr(default, name):
            raise SteleError(f"--{name} has no effect on code of your own, which is gated. Leave it out.")
    if measuring.cells.task != default.cells.task:
        raise SteleError("--task has no effect on code of your own. Leave it out.")
    if chosen.published.site != PublishOptions().site:
        raise SteleError("--site has no effect on code of your own, of which there is a report. Use --markdown.")
    gate.check(chosen.gate(watch.as_requirements(chosen.pins), 1.0))


def nightly(chosen: CodeOptions) -> int:
    """Gate the newer releases. Print and write what is worse. Return the exit code, as stele nightly has it."""
    deadline, name = time.monotonic() + chosen.budget, machine.name_of(machine.facts())
    key = content.digest([chosen.pins, dataclasses.asdict(chosen.model), dataclasses.asdict(chosen.program), name])
    state = State(FOLDER / f"{key}.json")
    by_package = {
        package: watch.newer(
            chosen.pins, package, index.releases(package, prereleases=True), chosen.last, prereleases=chosen.sync.pre
        )
        for package in chosen.pins
    }
    for package, candidates in by_package.items():
        print(f"{package}: {counted(len(candidates), 'release')} after {chosen.pins[package]}", flush=True)
    judged: list[str] = []
    complete = True
    for candidate in in_order(by_package, state):
        left = deadline - time.monotonic()
        if left <= 0:
            complete = False
            break
        earlier = state.nights.judged.get(candidate.name)
        state.nights.judged[candidate.name] = judge(chosen, candidate, earlier, left)
        judged.append(candidate.name)
        state.save()
    return publish(chosen, state, by_package, judged, name, complete=complete)


def in_order(by_package: dict[str, list[Candidate]], state: State) -> Iterator[Candidate]:
    """Yield the releases without a final result, and the newest of each package: your code may have changed.

    The newest come first, because they matter most if the budget is short.
    """
    for candidates in by_package.values():
        yield from candidates[-1:]
    for candidates in by_package.values():
        for candidate in reversed(candidates[:-1]):
            earlier = state.nights.judged.get(candidate.name)
            if earlier is None or not earlier.is_final:
                yield candidate


def judge(chosen: CodeOptions, candidate: Candidate, earlier: Judged | None, left: float) -> Judged:
    """Gate a release, or continue its gate of an earlier night. If your code has changed, the gate begins again.

    A night adds at most the default budget of a gate; ``left`` are the seconds of the budget of the night. Raises
    SubjectError if the code does not run with the pinned versions.
    """
    ended: list[Finished] = []
    more = min(left, JudgementOptions.budget)
    if earlier is not None and earlier.record is not None and files.is_file(Path(earlier.record)):
        budget = earlier.budget + (0 if earlier.is_final else more)
        try:
            again = replace(chosen.gate(candidate.requirements, budget), resume=Path(earlier.record))
            gate.gate_pair(again, ended.append)
            return watch.judge(ended[-1].verdicts, ended[-1].record.path, budget)
        except SteleError as error:
            say(f"{candidate.name} is judged again: {printable(str(error).splitlines()[0])}")
    try:
        gate.gate_pair(chosen.gate(candidate.requirements, more), ended.append)
    except SubjectError:
        raise
    except SteleError as error:
        message = without_passwords(str(error))
        say(f"stele: {candidate.name} was not judged: {printable(message)}")
        return msgspec.structs.replace(earlier or Judged(None), failure=message)  # what was judged stays
    return watch.judge(ended[-1].verdicts, ended[-1].record.path, more)


def publish(
    chosen: CodeOptions,
    state: State,
    by_package: dict[str, list[Candidate]],
    judged: list[str],
    name: str,
    *,
    complete: bool,
) -> int:
    """Write the reports, and print what is worse and was not reported before. Return the exit code.

    ``name`` is that of this machine.
    """
    nights = state.nights
    of_packages = [
        [(each.name, nights.judged[each.name]) for each in candidates if each.name in nights.judged]
        for candidates in by_package.values()
    ]
    worse = [
        (package, each)
        for package, of_package in zip(by_package, of_packages, strict=True)
        for each in watch.worse_lines(of_package, name)
    ]
    keys = [f"{package} {each.line}" for package, each in worse]
    new = [each for key, (_, each) in zip(keys, worse, strict=True) if key not in nights.reported]
    results = {tag: each for of_package in of_packages for tag, each in of_package}
    failures = {tag: each.failure for tag, each in results.items() if each.failure is not None}
    unknown = any(each.unknown for each in results.values())
    every = [each for _, each in worse]
    commands = {
        each.name: shlex.join(["stele", *chosen.gate(each.requirements, JudgementOptions.budget).typed])
        for candidates in by_package.values()
        for each in candidates
    }
    files.write_output_text(
        chosen.published.markdown, pages.of_code(every, new, judged, failures=failures, commands=commands)
    )
    if chosen.published.json:
        files.write_output_text(chosen.published.json, pages.to_json(every, judged, failures))
    nights.reported = tuple(keys)
    state.save()
    for each in new:
        print(f"{each.release}: {each.message}")
    print(
        f"{counted(len(judged), 'release')} judged, {len(new)} new of {counted(len(every), 'line')} that are worse. "
        f"Report: {chosen.published.markdown}"
    )
    if not complete:
        say("The budget ran out. The next run continues from here.")
    if new:
        return 1
    if failures:
        return 2
    return 3 if unknown or not complete else 0
