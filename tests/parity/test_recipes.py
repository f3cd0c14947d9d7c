"""Two recipes of a user, compared."""

import pytest

from stele import environments
from stele.measuring.settings import Settings
from stele.parity import ladder
from stele.parity import recipes as parity
from stele.subjects.model import inspection, spec
from tests.support import user_recipes
from tests.support.user_projects import RECIPE, change


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "rung"),
    [("", "", None), ("@ net[", "@ 1.001 @ net[", 3), ("last = likely / len(y)", "last = likely / 31", 5)],
)
def test_two_recipes_are_compared(project, tmp_path, monkeypatch, old, new, rung):
    monkeypatch.chdir(tmp_path)
    new = new.replace("@ 1.001 @", "* 1.001 @")
    old = old and old.replace("@ net[", "@ net[")
    other = tmp_path / "other"
    user_recipes.write(other, {**user_recipes.example(), RECIPE: user_recipes.NUMPY})
    if old:
        change(other, RECIPE, old, new)
    arms = [inspected(folder) for folder in (other, project)]
    settings = Settings(device="cpu", threads=1)
    found, doubt = parity.against(*arms, settings, timeout=60)
    first = ladder.first_difference(found)
    assert doubt is None and (first and first.rung) == rung
    assert rung is None or "(compared with numpy)" in first.message
    assert [one.rung for one in found] == [3, 4, 5, 6, 7]
    alone = parity.alone(arms[1], settings, timeout=60)
    assert [(one.rung, one.status) for one in alone] == [(1, "agrees"), (8, "agrees"), (9, "agrees")]


def inspected(folder):
    model = spec.of_recipe(folder / RECIPE, folder)
    result = inspection.inspect(environments.ORACLE, model, timeout=60)
    return parity.Arm(*inspection.resolved(model, environments.ORACLE, result))
