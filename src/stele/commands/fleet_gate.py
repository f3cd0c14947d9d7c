"""``stele fleet gate OLD NEW``: a gate on one node of each device type, and one verdict over all of them."""

import contextlib
import io
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import fleet_run, gate, options, screen
from stele.commands.gate import JudgementOptions, PairOptions, ReportOptions
from stele.commands.options import FleetOptions
from stele.errors import SteleError
from stele.fleet import campaign, cluster, node, slots, status
from stele.fleet.gates import Arena, Gates
from stele.fleet.stepwise import Emit, Event, Relay
from stele.fleet.work import Ending, Needs, Request, Work
from stele.gate import judgement, outcome, preparation
from stele.gate import record as records
from stele.gate.gate import Gate
from stele.gate.record import Record
from stele.gate.run import run
from stele.gate.trial import Trial, check_record, header, watch
from stele.measuring import content
from stele.measuring.progress import say
from stele.report import build, exports, markdown
from stele.report import gate as pages
from stele.report.sources import Sources
from stele.text import slug
from stele_suite import tasks

EPILOG = f"{gate.EXIT_CODES} The exit code is that of the worst type."


@dataclass(frozen=True, kw_only=True)
class FleetGateOptions:
    pair: PairOptions = field(default_factory=PairOptions)
    judged: JudgementOptions = field(default_factory=JudgementOptions)
    reports: ReportOptions = field(default_factory=ReportOptions)
    fleet: FleetOptions = field(default_factory=FleetOptions)
    again: bool = False


def add(verbs: Any) -> None:
    about = "is NEW worse than OLD, on each device type?"
    verb = verbs.add_parser("gate", help=about, description=about, epilog=EPILOG)
    gate.add_pair_options(verb)
    options.add_fleet_options(verb)
    verb.add_argument("--again", action="store_true", help="do not continue a gate that was interrupted")
    options.declare(verb, fleet_gate, FleetGateOptions)


def fleet_gate(chosen: FleetGateOptions) -> int:
    """Print the verdicts of each type, and the one over all. Returns the exit code of the worst."""
    trial_here = trial_from(chosen)
    request = request_from(chosen)
    place, _ = campaign.open_campaign(request, again=chosen.again)
    arenas = [arena_of(chosen, trial_here, place, name) for name in chosen.fleet.type or (None,)]
    # a cluster gets the files of this folder, because a model may lie there
    shipped = str(Path.cwd()) if chosen.fleet.address and not chosen.pair.subject.tuned else None
    with cluster.connected(chosen.fleet.address, node.measure_cell, working_dir=shipped) as connected:
        run_all(connected, arenas, place)
    for arena in arenas:
        report(chosen, arena)
    if len(arenas) > 1:
        screen.print_lines([overall_line(arenas)])
    if all(arena.result for arena in arenas):
        place.end()
    codes = [judgement.EXIT_CODES[arena.result["status"]] if arena.result else 2 for arena in arenas]
    return judgement.worst_code(codes)


def trial_from(chosen: FleetGateOptions) -> Trial:
    """Return the Trial of the options. What no node can do is said here, and not on each node.

    Raises SteleError. Without an address, the only node is this machine.
    """
    return gate.trial_from(chosen.pair, chosen.judged, here=chosen.fleet.address is None)


def overall_line(arenas: Sequence[Arena]) -> str:
    """Return ``REGRESSED over all types: H100 PASS, amd-epyc REGRESSED``."""
    statuses = {name_of(arena): (arena.result or {"status": "INCONCLUSIVE"})["status"] for arena in arenas}
    each = ", ".join(f"{name} {value}" for name, value in statuses.items())
    return f"{judgement.overall(list(statuses.values()))} over all types: {each}"


def request_from(chosen: FleetGateOptions) -> Request:
    """Return what identifies the command: an equal one continues it."""
    groups = (chosen.pair, chosen.judged, chosen.fleet)
    values = {name: str(value) for group in groups for name, value in options.flat(group).items()}
    return {"command": "gate", "options": values, "code": node.code(), "content": content.of_node()}


def name_of(arena: Arena) -> str:
    return str(arena.work.needs)


def arena_of(chosen: FleetGateOptions, trial: Trial, place: campaign.Campaign, type_name: str | None) -> Arena:
    """Return the gate on a type, with the record of an earlier command if there is one."""
    needs = Needs(chosen.pair.device, type_name)
    names = f"{trial.old.slug}-{trial.new.slug}"
    label = f"-{slug(type_name)}" if type_name else ""
    stem = f"{place.folder.name.partition('-')[0].replace('T', '-')}-{names}{label}"
    request: Request = {
        "pair": chosen.pair,
        "judged": chosen.judged,
        "code": node.code(),
        "content": content.of_node(),
        "folder": None if chosen.fleet.address else str(place.folder.absolute()),
        "data": {cell.task: fleet_run.fingerprint(cell.task) for cell in trial.cells if cell.task in tasks.NAMES},
        "name": slug(f"{names}-{type_name or chosen.pair.device}"),
        "header": None,
        "entries": [],
    }
    path = gate.FOLDER / f"{stem}-{place.folder.name[-8:]}.jsonl"
    before = records.newest(path)  # a gate that moved to another machine has a new record there
    record = None if before is None else records.resume(before)
    return Arena(Work(str(needs), f"gate on {needs}", request, needs), path, record)


def run_all(connected: cluster.Cluster, arenas: Sequence[Arena], place: campaign.Campaign) -> None:
    """Run the gates, and keep the status."""
    state = status.begin(shlex.join(["stele", *sys.argv[1:]]), len(arenas))
    state.places = len(arenas)
    names = {arena.work.key: arena.work.what for arena in arenas}

    def event(arena: Arena, news: Event) -> None:
        several = len(arenas) > 1
        for line in spoken_lines(arena, news):
            say(f"{name_of(arena)}: {line}" if several else line)
        if "status" in news:
            screen.print_lines([f"{arena.work.what}:", *news["lines"]] if several else news["lines"])

    def ended(arena: Arena, failure: str | None) -> None:
        state.end(Ending(arena.work, failure=failure), time.time())
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


def spoken_lines(arena: Arena, news: Event) -> list[str]:
    """Return what to say about an event."""
    begun = [f"record: {arena.record.path}"] if "header" in news and arena.record is not None else []
    return [*begun, *news.get("said", ())]


def report(chosen: FleetGateOptions, arena: Arena) -> None:
    """Write the reports of one type; of several types each file has the name of its type."""
    if arena.result is None or arena.record is None:
        return
    reports = chosen.reports.named(name_of(arena) if len(chosen.fleet.type) > 1 else None)
    last = arena.record.get(*outcome.KEY) or {}
    result = outcome.of_record(
        arena.record, outcome.with_known_statuses(last["verdicts"], str(arena.record.path)), last
    )
    if reports.json:
        files.write_output_text(reports.json, arena.result["json"])
    if reports.markdown:
        files.write_output_text(reports.markdown, markdown.render(build.report(Sources(gates=[result]))))
    if reports.junit:
        files.write_output_text(reports.junit, exports.to_junit([result]))


def on_node(request: Request, emit: Emit) -> Event:
    """Run the gate on this node: emit what is measured, and return the verdicts. This runs in a thread of an actor."""
    node.check(request["code"])
    node.check_content(request["content"])
    with spoken(emit):
        trial = gate.trial_from(request["pair"], request["judged"])
        for task, fingerprint in request["data"].items():
            node.inputs(task, fingerprint)
        what = f"stele fleet gate {trial.old.name} {trial.new.name}"
        with (
            node.working_in(request["folder"], request["name"]),
            slots.slot_for(what, trial.settings.device, say),
        ):
            gate.check_machine(trial.settings)  # of this place
            return judged(trial, request, emit)


def judged(trial: Trial, request: Request, emit: Emit) -> Event:
    trial, import_failure = preparation.prepare(trial, (), fresh=request["header"] is None)
    record = record_on_node(trial, request, emit)
    verdicts = import_failure or run(Gate(trial, record))
    record.add({outcome.KEY: outcome.entry(trial, verdicts)})
    return {
        "status": pages.overall_status(verdicts),
        "lines": pages.terminal_lines(trial, verdicts, record),
        "json": pages.to_json(trial, record, verdicts),
    }


def record_on_node(trial: Trial, request: Request, emit: Emit) -> Record:
    """Return the record so far if this machine measured it, and the same as now; or a new one."""
    path, begun = Path("record.jsonl"), request["header"]
    if begun is not None:
        record = Relay(path, begun, request["entries"], emit)
        try:
            check_record(record, trial)
            return watch(record, trial)
        except SteleError as error:
            say(f"The gate starts again here. {error}")
    facts = header(trial)
    emit({"header": facts})
    return watch(Relay(path, facts, [], emit), trial)


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
