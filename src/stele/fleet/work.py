"""What a node does, what it needs for that, and what came of it. Pure."""

from collections.abc import Callable
from typing import Any, NamedTuple

from stele.errors import SteleError

CPU, CUDA = "cpu", "cuda"
DONE, FAILED, UNFIT, LACKS, LOST = "done", "failed", "unfit", "lacks", "lost"


Request = dict[str, Any]  # what a node gets, as JSON


class Needs(NamedTuple):
    """The device that work needs: the cores of a NUMA node, or one accelerator; of a type, or of any."""

    device: str = CPU
    type: str | None = None  # as the nodes name it: "H100", "amd-epyc"

    def __str__(self) -> str:
        return self.type or {CPU: "processor", CUDA: "GPU"}.get(self.device, self.device)


class Work(NamedTuple):
    """What one node does in one process. ``request`` is what the function on the node receives."""

    key: str  # unique in a campaign, and a part of a file name
    what: str  # in messages: "torch cnn train, launch 1"
    request: Request
    needs: Needs = Needs()


class Started(NamedTuple):
    """A node has started work; after a node was lost, another one starts it again."""

    key: str
    node: str
    when: float  # time.time() of the machine of the command


class Node(NamedTuple):
    """A machine of the fleet. ``places`` is the number of measurements that it does at the same time."""

    id: str
    name: str
    types: tuple[str, ...]
    places: int = 1
    gpus: int = 0

    def has(self, needs: Needs) -> bool:
        """Return whether work with these needs can run here when nothing else does."""
        return self.room(needs.device) > 0 and needs.type in (None, *self.types)

    def room(self, device: str) -> int:
        """Return how many measurements on such a device it does at the same time."""
        return self.places if device == CPU else min(self.places, self.gpus)


class Reply(NamedTuple):
    """What a node returned: a result, or the message why there is none. ``status`` is one of the words above."""

    status: str
    node: Node | None = None
    result: Any = None
    message: str = ""


class Ending(NamedTuple):
    """How work ended: with a result, or with a message that says why there is none."""

    work: Work
    result: Any = None
    failure: str | None = None


Function = Callable[[Request], Any]  # what a node calls with the request


class NodeUnfit(Exception):
    """A node cannot measure anything: the message says why, and what to do there."""


class NodeLacks(Exception):
    """A node cannot do this work, but perhaps other work: the message says what it lacks."""


def attempt(node: Node, function: Callable[[], Any]) -> Reply:
    """Call the function on a node. Every failure is a Reply, so that an engine does not print it."""
    try:
        return Reply(DONE, node, function())
    except NodeUnfit as error:
        return Reply(UNFIT, node, message=str(error))
    except NodeLacks as error:
        return Reply(LACKS, node, message=str(error))
    except SteleError as error:
        return Reply(FAILED, node, message=str(error))
    except Exception as error:
        return Reply(FAILED, node, message=f"{type(error).__name__}: {error}")
