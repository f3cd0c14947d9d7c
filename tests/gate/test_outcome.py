"""What a gate said and what it did not judge."""

import pytest

from stele.gate import outcome


@pytest.mark.parametrize(
    ("facts", "missing"),
    [
        ({"cells": [["m", "train"], ["m", "infer"]], "metrics": {"step": 0.05, "host-memory": 0.1}}, []),
        ({"cells": [["m", "infer"]], "metrics": {"latency": 0.05, "peak-memory": 0.1}},
         ["training", "the time of a step"]),
        ({"cells": [["m", "train"], ["m", "infer"]], "metrics": {"step": 0.05}, "parity": False},
         ["whether both compute the same", "memory"]),
    ],
)  # fmt: skip
def test_what_is_not_judged_follows_from_the_options(facts, missing):
    assert outcome.not_judged({"parity": True, "model": {"spec": "m", "folder": "/"}, **facts}) == missing
