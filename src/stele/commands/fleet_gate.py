"""``stele fleet gate OLD NEW``: a gate on one node of each device type, and one verdict over all of them."""

import argparse
import contextlib
import io
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import fleet_run, gate, gate_options, options, screen
from stele.commands.options import say
from stele.environments.description import slug
from stele.errors import SteleError
from stele.fleet import campaign, cluster, node, slots, status
from stele.fleet.gates import Arena, Gates
from stele.fleet.stepwise import Emit, Event, Relay
from stele.fleet.work import Needs, Outcome, Work
from stele.gate import judgement, outcome, record, trial
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.measuring import content
from stele.report import build, exports, markdown
from stele.report import gate as pages
from stele.report.sources import Sources
from stele_worker import tasks

REPORTS = ("json", "markdown", "junit")
LOCAL = (
    "command",
    "json",
    "markdown",
    "junit",
    "address",
    "type",
    "again",
    "typed",
)  # options that no node needs
EPILOG = f"{gate.EXIT_CODES} The exit code is that of the worst type."


def add(verbs: Any) -> None:
    about = "is it safe to upgrade, on each device type?"
    verb = verbs.add_parser("gate", help=about, description=about, epilog=EPILOG)
    gate_options.add_pair_options(verb)
    options.add_fleet_options(verb)
    verb.add_argument("--again", action="store_true", help="do not continue a gate that was interrupted")
    # a node gives each measurement one device
    verb.set_defaults(command=fleet_gate, replaced=(), changed=None, **options.ONE_DEVICE)


def fleet_gate(arguments: argparse.Namespace) -> int:
    """Print the verdicts of each type, and the one over all. Returns the exit code of the worst."""
    subject = gate_options.trial_from(arguments)  # what no node can do is said here, and not on each node
    request = request_from(arguments)
    place, _ = campaign.open_campaign(request, again=arguments.again)
    arenas = [arena_of(arguments, subject, place, name) for name in (*arguments.type,) or (None,)]
    # a cluster gets the files of this folder, because a model may lie there
    shipped = str(Path.cwd()) if arguments.address and arguments.model else None
    with cluster.connected(arguments.address, node.measure_cell, working_dir=shipped) as connected:
        run(connected, arenas, place)
    for arena in arenas:
        report(arguments, arena)
    if len(arenas) > 1:
        screen.print_lines([overall_line(arenas)])
    if all(arena.result for arena in arenas):
        place.end()
    return worst([gate.EXIT_STATUS[arena.result["status"]] if arena.result else 2 for arena in arenas])


def worst(codes: Sequence[int]) -> int:
    """Return the worst exit code: a verdict against NEW, then a gate that could not be run, then no verdict."""
    return max(codes, key=(0, 3, 2, 1).index)


def overall_line(arenas: Sequence[Arena]) -> str:
    """Return ``REGRESSED over all types: H100 PASS, amd-epyc REGRESSED``."""
    statuses = {name_of(arena): (arena.result or {"status": "INCONCLUSIVE"})["status"] for arena in arenas}
    each = ", ".join(f"{name} {value}" for name, value in statuses.items())
    return f"{judgement.overall(list(statuses.values()))} over all types: {each}"


def request_from(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what identifies the command: an equal one continues it."""
    typed = {
        name: str(value)
        for name, value in vars(arguments).items()
        if name not in ("command", "again", "typed", *REPORTS)
    }
    return {"command": "gate", "options": typed, "code": node.code(), "content": content.of_node()}


def name_of(arena: Arena) -> str:
    return str(arena.work.needs)


def arena_of(
    arguments: argparse.Namespace, subject: Trial, place: campaign.Campaign, type_name: str | None
) -> Arena:
    """Return the gate on a type, with the record of an earlier command if there is one."""
    needs = Needs(arguments.device, type_name)
    names = f"{subject.old.slug}-{subject.new.slug}"
    label = f"-{slug(type_name)}" if type_name else ""
    stem = f"{place.folder.name.partition('-')[0].replace('T', '-')}-{names}{label}"
    typed = {name: value for name, value in vars(arguments).items() if name not in LOCAL}
    request: dict[str, Any] = {
        "arguments": typed,
        "code": node.code(),
        "content": content.of_node(),
        "folder": None if arguments.address else str(place.folder.absolute()),
        "data": {
            cell.task: fleet_run.fingerprint(cell.task) for cell in subject.cells if cell.task in tasks.NAMES
        },
        "name": slug(f"{names}-{type_name or arguments.device}"),
        "header": None,
        "entries": [],
    }
    path = gate.FOLDER / f"{stem}-{place.folder.name[-8:]}.jsonl"
    before = record.newest(path)  # a gate that moved to another machine has a new record there
    found = None if before is None else record.resume(before)
    return Arena(Work(str(needs), f"gate on {needs}", request, needs), path, found)


def run(connected: cluster.Cluster, arenas: Sequence[Arena], place: campaign.Campaign) -> None:
    """Run the gates, and keep the status."""
    state = status.begin(shlex.join(["stele", *sys.argv[1:]]), len(arenas))
    state.places = len(arenas)
    names = {arena.work.key: arena.work.what for arena in arenas}

    def event(arena: Arena, found: Event) -> None:
        several = len(arenas) > 1
        for line in spoken_lines(arena, found):
            say(f"{name_of(arena)}: {line}" if several else line)
        if "status" in found:
            screen.print_lines([f"{arena.work.what}:", *found["lines"]] if several else found["lines"])

    def ended(arena: Arena, failure: str | None) -> None:
        state.end(Outcome(arena.work, failure=failure), time.time())
        if failure is not None:
            say(f"stele: {arena.work.what}: {failure}")

    def idle() -> None:
        for started in connected.started():
            state.start(names[started.key], started)
        status.write(place.folder / status.FILE, state)

    try:
        Gates(connected, on_node, event, ended).run(arenas, idle)
    finally:
        state.running.clear()
        state.ended = time.time() if state.waiting == 0 else None
        status.write(place.folder / status.FILE, state)


def spoken_lines(arena: Arena, found: Event) -> list[str]:
    """Return what to say about an event."""
    begun = [f"record: {arena.record.path}"] if "header" in found and arena.record is not None else []
    return [*begun, *found.get("said", ())]


def report(arguments: argparse.Namespace, arena: Arena) -> None:
    """Write the reports of one type; of several types each file has the name of its type."""
    if arena.result is None or arena.record is None:
        return
    paths = gate.report_files(arguments, name_of(arena) if len(arguments.type) > 1 else None)
    said = arena.record.get(*outcome.KEY) or {}
    found = outcome.of_record(arena.record, outcome.to_verdicts(said, str(arena.record.path)), said)
    if path := paths["json"]:
        files.write_output_text(path, arena.result["json"])
    if path := paths["markdown"]:
        files.write_output_text(path, markdown.render(build.report(Sources(gates=[found]))))
    if path := paths["junit"]:
        files.write_output_text(path, exports.to_junit([found]))


def on_node(request: dict[str, Any], emit: Emit) -> Event:
    """Run the gate on this node: emit what is measured, and return the verdicts. This runs in a thread of an actor."""
    node.check(request["code"])
    node.check_content(request["content"])
    with spoken(emit):
        subject = gate_options.trial_from(argparse.Namespace(**request["arguments"]))
        for task, fingerprint in request["data"].items():
            node.inputs(task, fingerprint)
        what = f"stele fleet gate {subject.old.name} {subject.new.name}"
        with (
            node.working_in(request["folder"], request["name"]),
            slots.taken(what, subject.settings.device, say),
        ):
            gate_options.check_processors(subject.settings)  # of this place
            return judged(subject, request, emit)


def judged(subject: Trial, request: dict[str, Any], emit: Emit) -> Event:
    subject, import_failure = gate.prepare(subject, (), fresh=request["header"] is None)
    log = record_on_node(subject, request, emit)
    verdicts = import_failure or gate.run_trial(subject, log)
    log.add({outcome.KEY: outcome.entry(subject, verdicts)})
    return {
        "status": pages.overall_status(verdicts),
        "lines": pages.terminal_lines(subject, verdicts, log),
        "json": pages.to_json(subject, log, verdicts),
    }


def record_on_node(subject: Trial, request: dict[str, Any], emit: Emit) -> Record:
    """Return the record so far if this machine measured it, and the same as now; or a new one."""
    path, header = Path("record.jsonl"), request["header"]
    if header is not None:
        log = Relay(path, header, request["entries"], emit)
        try:
            trial.check_record(log, subject)
            return trial.watch(log, subject)
        except SteleError as error:
            say(f"The gate starts again here. {error}")
    facts = trial.header(subject)
    emit({"header": facts})
    return trial.watch(Relay(path, facts, [], emit), subject)


class Lines(io.TextIOBase):
    """A stream that emits each line of the thread that made it; other threads write to the stream before it."""

    def __init__(self, emit: Emit) -> None:
        self.emit, self.rest = emit, ""
        self.thread, self.before = threading.get_ident(), sys.stderr

    def write(self, text: str) -> int:
        if threading.get_ident() != self.thread:
            return self.before.write(text)
        *lines, self.rest = (self.rest + text).split("\n")
        if lines:
            self.emit({"said": lines})
        return len(text)


@contextlib.contextmanager
def spoken(emit: Emit) -> Iterator[None]:
    """Emit what the gate says in place of printing it on the node."""
    with contextlib.redirect_stderr(Lines(emit)):
        yield
