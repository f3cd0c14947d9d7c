"""What a node has, and what comes of its work."""

import pytest

from stele.errors import SteleError
from stele.fleet.work import CPU, CUDA, DONE, FAILED, LACKS, UNFIT, Needs, Node, NodeLacks, NodeUnfit, attempt

NODE = Node("1", "abacus", ("H100", "amd-epyc"), places=4, gpus=2)


@pytest.mark.parametrize(
    ("needs", "has"),
    [
        (Needs(), True),
        (Needs(CUDA), True),
        (Needs(CUDA, "H100"), True),
        (Needs(CPU, "amd-epyc"), True),
        (Needs(CUDA, "A100"), False),
    ],
)
def test_a_node_has_a_device_of_its_types(needs, has):
    assert NODE.has(needs) is has


def test_a_node_without_a_gpu_has_no_room_for_one():
    assert (NODE.room(CPU), NODE.room(CUDA)) == (4, 2)
    assert not NODE._replace(gpus=0).has(Needs(CUDA))


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (NodeUnfit("no disk"), UNFIT, "no disk"),
        (NodeLacks("no data"), LACKS, "no data"),
        (SteleError("no release"), FAILED, "no release"),
        (ValueError("3"), FAILED, "ValueError: 3"),
    ],
)
def test_every_failure_is_an_answer(error, status, message):
    def fail():
        raise error

    answer = attempt(NODE, fail)
    assert (answer.status, answer.message, answer.node, answer.result) == (status, message, NODE, None)


def test_a_result_is_an_answer():
    assert attempt(NODE, lambda: 7)[:3] == (DONE, NODE, 7)


def test_needs_are_named_by_their_type_or_their_device():
    assert [str(needs) for needs in (Needs(), Needs(CUDA), Needs(CUDA, "H100"))] == ["processor", "GPU", "H100"]
