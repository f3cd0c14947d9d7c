"""Ray as the engine of a fleet: it schedules work, tries it again if a node is lost, and returns the results.

Source: the documentation of Ray on tasks, labels, fault tolerance and token authentication.
"""

import contextlib
import os
import platform
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from stele.errors import SteleError
from stele.fleet import guard, slots, stepwise
from stele.fleet.stepwise import Steps
from stele.fleet.work import CPU, LOST, Function, Needs, Node, NodeUnfit, Reply, Request, Started, Work, attempt
from stele.measuring import machine
from stele.text import slug

PLACE = "measurement"  # a resource of each node: as many as it has NUMA nodes
PROCESSOR, GPU = "stele-processor", "ray.io/accelerator-type"  # labels of nodes; Ray sets the second itself
RAY_NODE = "ray.io/node-id"
CLOCKS = 60.0  # seconds by which the clock of a node may differ
CANCEL = 10.0  # seconds in which cancelled work ends
STORE = 100 * 2**20  # bytes of the object store: a Run has about 20 KB
CONNECT = 5.0  # seconds
QUIET: dict[str, bool | str] = {"log_to_driver": False, "logging_level": "ERROR"}
ABSENT = "Ray is not installed. Run: pip install 'pytest-stele[fleet]'"


class Board:
    """An actor beside the command: nodes tell it what they start, and it tells them the time."""

    def __init__(self) -> None:
        self.events: list[Started] = []

    def begin(self, key: str, node: str) -> float:
        """Note that a node starts work. Return the time of the machine of the command."""
        now = time.time()
        self.events.append(Started(key, node, now))
        return now

    def take(self) -> list[Started]:
        """Return what was noted since the last call."""
        events, self.events = self.events, []
        return events


class Gate:
    """An actor: a gate on a node. Each call of ``step`` returns a Reply with the next event."""

    def __init__(self, function: stepwise.Function, key: str, request: Request, board: Any) -> None:
        self.function, self.key, self.request, self.board = function, key, request, board
        self.steps: Steps | None = None

    def step(self) -> Reply:
        return attempt(this_node(), self.next)

    def next(self) -> stepwise.Event:
        import ray

        if self.steps is None:
            check_clock(ray.get(self.board.begin.remote(self.key, platform.node())))
            self.steps = Steps(lambda emit: self.function(self.request, emit))
        return self.steps.next()


def execute(function: Function, key: str, request: Request, board: Any) -> Reply:
    """Do work on the node that Ray has chosen."""
    import ray

    node = this_node()

    def measure() -> Any:
        check_clock(ray.get(board.begin.remote(key, node.name)))
        return function(request)

    return attempt(node, measure)


def this_node() -> Node:
    import ray

    return Node(ray.get_runtime_context().get_node_id(), platform.node(), ())


def check_clock(expected: float) -> None:
    """Raise NodeUnfit if the clock of this node differs from that of the machine of the command."""
    difference = time.time() - expected
    if abs(difference) > CLOCKS:
        direction = "ahead of" if difference > 0 else "behind"
        raise NodeUnfit(
            f"its clock is {abs(difference) / 60:.0f} min {direction} that of this machine, so its Runs would have a "
            "wrong date. Set it, for example with NTP."
        )


@contextlib.contextmanager
def postponed_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM interrupt at the end of this block only: an exception in Ray may end the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: arrived.append(number)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # a library has set it
                signal.signal(number, handler)
    if arrived:
        raise KeyboardInterrupt


class Cluster:
    """A connection to Ray, as the Engine of ``stele.fleet.dispatch`` and of ``stele.fleet.gates``."""

    def __init__(self, ray: Any, function: Function) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self.ray, self.function = ray, function
        options = {"num_cpus": 0, "scheduling_strategy": here, "max_restarts": -1, "max_task_retries": -1}
        self.board = ray.remote(Board).options(**options).remote()
        self.remote = ray.remote(execute)
        self.pending: set[Any] = set()

    @postponed_signals()
    def nodes(self) -> list[Node]:
        """Return the nodes that can measure."""
        return [to_node(facts) for facts in self.ray.nodes() if facts["Alive"] and facts["Resources"].get(PLACE)]

    @postponed_signals()
    def submit(self, works: Sequence[Work], avoided: Collection[str]) -> list[Any]:
        return [self.submit_one(work, avoided) for work in works]

    def submit_one(self, work: Work, avoided: Collection[str]) -> Any:
        options = {**options_of(work.needs, avoided), "max_retries": 1, "name": work.what}
        handle = self.remote.options(**options).remote(self.function, work.key, work.request, self.board)
        self.pending.add(handle)
        return handle

    @postponed_signals()
    def wait(self, handles: Sequence[Any], seconds: float) -> list[Any]:
        if not self.ray.wait(handles, num_returns=1, timeout=seconds)[0]:
            return []
        ended, _ = self.ray.wait(handles, num_returns=len(handles), timeout=0)
        return list(ended)

    @postponed_signals()
    def answer(self, handle: Any) -> Reply:
        self.pending.discard(handle)
        try:
            answer: Reply = self.ray.get(handle)
            return answer
        except self.ray.exceptions.RayError as error:
            return Reply(LOST, message=f"{type(error).__name__}: {str(error).splitlines()[0]}")

    @postponed_signals()
    def started(self) -> list[Started]:
        try:
            events: list[Started] = self.ray.get(self.board.take.remote())
        except self.ray.exceptions.RayError:  # Ray starts the Board again
            return []
        return events

    @postponed_signals()
    def hold(self, function: stepwise.Function, work: Work, avoided: Collection[str]) -> Any:
        """Start an actor, which has its place until it ends."""
        actor = self.ray.remote(Gate).options(**options_of(work.needs, avoided))
        return actor.remote(function, work.key, work.request, self.board)

    @postponed_signals()
    def step(self, gate: Any) -> Any:
        return gate.step.remote()

    def end(self, gate: Any) -> None:
        self.ray.kill(gate)

    def cancel(self, handle: Any) -> None:
        self.pending.discard(handle)
        self.ray.cancel(handle)

    def close(self) -> None:
        """End what still runs. The nodes end the processes of their frameworks."""
        handles = list(self.pending)
        for handle in handles:
            self.ray.cancel(handle)
        if handles:
            self.ray.wait(handles, num_returns=len(handles), timeout=CANCEL)


def options_of(needs: Needs, avoided: Collection[str] = ()) -> dict[str, Any]:
    """Return Ray's options for work: one place, the device, and labels of the nodes that may do it."""
    selector = {}
    if needs.type:
        selector[PROCESSOR if needs.device == CPU else GPU] = needs.type
    if avoided:
        selector[RAY_NODE] = f"!in({','.join(sorted(avoided))})"
    gpus = {} if needs.device == CPU else {"num_gpus": 1}
    return {"num_cpus": 0, "resources": {PLACE: 1}, **gpus, "label_selector": selector}


def to_node(facts: dict[str, Any]) -> Node:
    labels, resources = facts.get("Labels") or {}, facts["Resources"]
    types = [labels[name] for name in (PROCESSOR, GPU) if labels.get(name)]
    places, gpus = int(resources[PLACE]), int(resources.get("GPU", 0))
    return Node(facts["NodeID"], facts["NodeManagerHostname"], tuple(types), places, gpus)


def resources() -> dict[str, float]:
    """Return what this machine offers to Ray beside its processors and GPUs."""
    return {PLACE: float(len(slots.slots()))}


def labels() -> dict[str, str]:
    """Return the labels of this machine: the type of its processor, such as ``amd-epyc-7b13``."""
    return {PROCESSOR: processor_type()}


def processor_type() -> str:
    name = slug((machine.processor() or "unknown").lower().replace(" ", "-"))
    return name[:60].strip("-_.")


@contextlib.contextmanager
def connected(address: str | None, function: Function, *, working_dir: str | None = None) -> Iterator[Cluster]:
    """Connect to a Ray cluster, or start Ray on this machine without an address; it stops with the block.

    ``working_dir`` is copied to the nodes of a cluster. Raises SteleError if there is no Ray, or no cluster.
    """
    if address is None:
        keep_private()
    ray = imported()
    with running_here(ray) if address is None else running_at(ray, address, working_dir):
        cluster = Cluster(ray, function)
        try:
            yield cluster
        finally:
            cluster.close()


def keep_private() -> None:
    """Let only this command send work to the Ray that it starts. Ray reads the variables when it is imported."""
    if "ray" not in sys.modules:
        os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
        # without clusters, Ray listens only on the address of this machine itself, on every system
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"


def imported() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # keep CUDA_VISIBLE_DEVICES of CPU work
    try:
        import ray
    except ModuleNotFoundError:
        raise SteleError(ABSENT) from None
    return ray


@contextlib.contextmanager
def running_here(ray: Any) -> Iterator[None]:
    """Start Ray on this machine for this block."""
    with guard.guarded(tempfile.mkdtemp(prefix="stele-")):
        with explained("Ray does not start on this machine"), own_signals():
            ray.init(
                address="local",
                resources=resources(),
                labels=labels(),
                object_store_memory=STORE,
                include_dashboard=False,
                _temp_dir=os.environ[guard.VARIABLE],
                **QUIET,
            )
        try:
            yield
        finally:
            ray.shutdown()


@contextlib.contextmanager
def running_at(ray: Any, address: str, working_dir: str | None) -> Iterator[None]:
    """Connect to the cluster at an address. Its nodes get a copy of ``working_dir``."""
    shipped = {} if working_dir is None else {"working_dir": working_dir, "excludes": [".stele", ".git"]}
    with explained(f"Cannot use the Ray cluster at {address}"), own_signals():
        reach(address)
        ray.init(address=address, runtime_env=shipped, **QUIET)
    try:
        yield
    finally:
        ray.shutdown()


def reach(address: str) -> None:
    """Raise OSError if nothing listens at ``host:port``. Ray itself tries for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=CONNECT).close()


@contextlib.contextmanager
def own_signals() -> Iterator[None]:
    """Keep what SIGTERM does: Ray replaces it."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Raise SteleError in place of the errors of Ray's start, with what to do."""
    from ray.exceptions import AuthenticationError, RayError

    try:
        yield
    except (ConnectionError, OSError, ValueError, RuntimeError, RayError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        advice = "Start its first node with: stele fleet join --head IP, and run this command there."
        if "mismatch" in reason.lower():
            advice = "All nodes need the same versions of Ray and Python. Install them, then start the nodes again."
        if isinstance(error, AuthenticationError):
            advice = "Set RAY_AUTH_TOKEN to the token of the cluster: see docs/fleet.md."
        raise SteleError(f"{what}: {reason.rstrip('.')}. {advice}") from None
