"""Find what a model of the user is: import its module or build it from a library. Each process does this once."""

from stele_worker.models import importing, libraries
from stele_worker.models.errors import SpecError
from stele_worker.models.specs import LIBRARIES, Source, attribute, nearest, parse


def find(model):
    """Import the module that the host's dict names and return its Source. Raise SpecError or UserCodeError."""
    if model.get("recipe"):
        return find_recipe(model)
    spec, folder = parse(model["spec"]), model["folder"]
    if spec.kind in LIBRARIES:
        return Source(model["spec"], folder, spec.kind, libraries.factory(spec.kind, spec.name, folder), None)
    importing.stay_offline()
    module = importing.import_place(spec, folder, model["spec"])
    return Source(model["spec"], folder, spec.kind, attribute(module, spec.name, model["spec"]), module)


def find_recipe(model):
    module = importing.import_content(model["recipe"], "recipe", model["spec"], model["folder"])
    if not callable(getattr(module, "network", None)):
        message = "{} does not define the function network(task).{}"
        raise SpecError(message.format(model["spec"], nearest("network", vars(module))))
    return Source(model["spec"], model["folder"], "recipe", module.network, module)
