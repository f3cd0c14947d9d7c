"""What a worker says about a model."""

from stele_worker import protocol
from stele_worker.models import inspection as worker_inspection
from tests.support import user_recipes
from tests.support.user_projects import TASK


def test_an_inspection_says_what_the_task_gives(project):
    found = worker_inspection.inspect(user_recipes.described(project, "spirals", "numpy"))
    protocol.encode(found)
    assert (found["framework"], found["parameters"], found["output"]) == ("numpy", 387, [32, 3])
    assert found["inputs"] == [{"name": None, "kind": "float", "shape": [32, 2], "high": None, "dtype": None}]
    assert found["target"] == {"name": None, "kind": "int", "shape": [32], "high": 3, "dtype": None}
    assert found["accuracy"] and found["deterministic"] and found["inferred_from"] == TASK
