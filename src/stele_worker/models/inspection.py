"""Inspect a user's model before anything is measured: framework, inputs, target and output."""

import contextlib
import importlib
import random
from typing import NamedTuple, Optional

import numpy

from stele_worker import frameworks
from stele_worker.agreement import all_agree
from stele_worker.models import (
    building,
    calling,
    cpu,
    file_inspection,
    inputs,
    outputs,
    own_training,
    recipe_files,
    specs,
    targets,
    task,
    weights,
)
from stele_worker.models.errors import SpecError, UserCodeError, describe_error, raise_internal, user_code

SHOWN = 4  # outputs in the summary


class Found(NamedTuple):
    """The inputs of a model, and where they come from."""

    inputs: tuple  # of Input
    origin: str  # for people
    values: Optional[dict] = None  # {label: array}, of example_inputs()
    place: Optional[str] = None  # of the function that gave the values: "model" or "module"


def inspect(model):
    """See ``stele_worker.models``."""
    source = specs.find(model)
    cpu.use()
    file = file_inspection.task_file(model)
    draft = file_inspection.first_task(model, file)
    net = built_net = building.build(source, 0, draft)
    framework = framework_of(model, net)
    recipe, module = recipe_for(model, framework, file), frameworks.load(framework)
    if file is None:
        found = inputs_of(model, source, net, recipe)
        draft = task.make(model, found.inputs, None, "smoke", values=found.values)
    else:
        found = Found(draft.inputs, file.spec)
    with failures(model, found.inputs, source):
        net = recipe.prepare(net, draft)
        built = recipe.facts(net) if hasattr(recipe, "facts") else None
        arrays = weights.read_files(model)
        net = recipe.load(net, arrays, model)
        if file is None:
            final = targets.complete(draft, recipe, net, module.put)
            arrays = example(final, module.put)
        else:
            net = recipe.load(net, file.weights(0))
            final = file_inspection.with_target(draft, recipe, net, module.put)
            arrays = file_inspection.batch(final, file, module.put)
        step = recipe.inference_step(net, final)
        value = step(*arrays)
        main, first = outputs.main_name(value), fetched(value, module)
        again = fetched(step(*arrays), module)
    if file is not None:
        file_inspection.check_output(final, source, file, first[main].shape)
    numbers = {"parameters": recipe.count(net), "main": main, "outputs": described(value)}
    numbers["output"] = next(one["shape"] for one in numbers["outputs"] if one["name"] == main)
    numbers["accuracy"] = file is not None and file.counts()
    numbers["untrained"] = why_untrained(recipe, built_net, len(first))
    told = [
        name for name in calling.told(recipe.function(net)) if name in getattr(recipe, "FLAGS", calling.FLAGS)
    ]
    numbers["loss"] = loss_of(recipe, net, final, numbers)
    numbers.update(built=built, remark=weights.remark())
    return answer(framework, final, found, dict(numbers, deterministic=all_agree(first, again)), told)


def why_untrained(recipe, net, count):
    """Return why the training of a model is not measured; None if it is, and for a recipe that has its own."""
    reason = recipe.why_untrained(net, count) if hasattr(recipe, "why_untrained") else None
    return reason and own_training.ADVICE.format(reason)


def loss_of(recipe, net, final, numbers):
    """Return the name of the loss; of several outputs also that of the one of which it is computed."""
    name = recipe.loss_name(net, final.optimizer) if hasattr(recipe, "loss_name") else None
    name = name or targets.loss(final)
    if name == targets.OWN or len(numbers["outputs"]) == 1:
        return name
    return "{} of the output {}".format(name, numbers["main"])


def fetched(value, module):
    return {
        name: numpy.asarray(outputs.fetch(one, module.fetch)) for name, one in outputs.named(value).items()
    }


def described(value):
    """Return the name, shape and dtype of each output."""
    return [
        {"name": name, "shape": [int(size) for size in one.shape], "dtype": inputs.dtype_of(one)}
        for name, one in outputs.named(value).items()
    ]


def complete(model, framework, scale, seed, dtype):
    """Return the Task of a model; infer the inputs and the target if the host left them out."""
    recipe, module = recipe_for(model, framework), frameworks.load(framework)
    if model.get("inputs") and "target" in model:
        given, values = inputs.parse(model["inputs"]), None
        target = inputs.parse([model["target"]])[0] if model["target"] else None
        if model.get("examples"):
            own = own_examples(model, framework, recipe, seed)
            check_examples(model["spec"], given, own)
            values = own.values
        return task.make(model, given, target, scale, seed, dtype, values)
    source = specs.find(model)
    net = building.build_for(source, framework, seed, file_inspection.first_task(model, None))
    found = inputs_of(model, source, net, recipe, seed)
    draft = task.make(model, found.inputs, None, scale, seed, dtype, found.values)
    with failures(model, found.inputs, source):
        return targets.complete(draft, recipe, recipe.prepare(net, draft), module.put)


def check_examples(spec, given, own):
    """Raise SpecError if example_inputs() returns something else than in the inspection: nothing else stands for it."""
    changed = inputs.difference(given, own.inputs)
    if changed is None and own.values is None:
        changed = "the numbers of each array are equal now"
    if changed is not None:
        message = "{}: example_inputs() does not return what it returned in the inspection: {}."
        raise SpecError(message.format(spec, changed))


def own_examples(model, framework, recipe, seed):
    """Return what example_inputs() of this arm returns. Raise SpecError if it is missing."""
    source = specs.find(model)
    net = building.build_for(source, framework, seed) if model["examples"] == "model" else None
    found = example_inputs(source, net, framework, recipe, seed)
    if found is None:
        raise SpecError("{} has no example_inputs() any more.".format(model["spec"]))
    return found


def framework_of(model, net):
    """Return the framework of a model, or the one after which a recipe file is named."""
    return recipe_files.framework(model) if model.get("recipe") else specs.framework_of(net)


def recipe_for(model, framework, file=None):
    """Return the recipe of a model: derived, or from the file of the user."""
    if not model.get("recipe"):
        return recipe_of(framework)
    return recipe_files.recipe(model, None if file is None else file.weights(0))


def recipe_of(framework):
    return importlib.import_module("stele_worker.models." + framework)


def inputs_of(model, source, net, recipe, seed=0):
    """Return the Found inputs. Raise SpecError if they cannot be inferred."""
    layers = recipe.layers(net)
    if model.get("inputs"):
        found = Found(inputs.parse(model["inputs"]), "the command line")
    else:
        found = example_inputs(source, net, framework_of(model, net), recipe, seed)
        found = found or Found(*recipe.inputs(net, source) or (None, None))
    if not found.inputs:
        raise SpecError(hint(source.spec, building.required(recipe.function(net))))
    return found._replace(inputs=inputs.complete(found.inputs, recipe.vocabulary(net) if layers else None))


def example_inputs(source, net, framework, recipe, seed):
    """Return what example_inputs() of the model or of its module returns; None if neither has it.

    The generators are seeded first, so that a function that draws its inputs returns the same in every process.
    """
    for place, holder in (("model", net), ("module", source.module)):
        function = getattr(holder, "example_inputs", None)
        if callable(function):
            random.seed(seed)
            numpy.random.seed(seed)
            recipe.seed(seed)
            with user_code(source.spec, source.folder):
                examples = function()
            given, values = inputs.from_examples(examples, double=framework == "jax")
            if inputs.show_shapes_alone(values):
                return Found(given, "example_inputs()")
            return Found(given, "example_inputs()", values, place)
    return None


def hint(spec, names):
    """Return what to add to the command line, for each parameter that the model requires."""
    names = names if len(names) > 1 else [""]
    options = " ".join("--input {}8x3x64x64".format(name and name + "=") for name in names)
    message = (
        "The inputs of {} cannot be inferred. Add for example: {}\nOf whole numbers: --input {}int:16x64:1000\n"
        "Or write a function example_inputs() beside the model, which returns a batch: docs/your-model.md"
    )
    return message.format(spec, options, names[0] and names[0] + "=")


@contextlib.contextmanager
def failures(model, given, source):
    """Turn an exception of the model into a SpecError with the shapes of its inputs and the user's frames."""
    try:
        yield
    except (SpecError, UserCodeError):
        raise
    except BaseException as error:  # also sys.exit()
        raise_internal(error)
        if source.kind == "recipe":
            raise recipe_files.failure(source, given, error) from error
        shapes = " ".join("--input " + inputs.option(each) for each in given)
        message = "{} fails with these inputs: {}\n{}\nIf the inputs are wrong, write others after --input."
        reason = describe_error(error, model["folder"])
        raise SpecError(message.format(model["spec"], shapes, reason)) from error


def example(final, put):
    """Return one batch of the inputs on the device."""
    return [put(array) for array in task.example(final, final.batch)[: len(final.inputs)]]


def shown(found):
    """Return the first outputs as text, such as ``logits 4x5, boxes 4x4, ...``."""
    texts = ["{} {}".format(one["name"], "x".join(map(str, one["shape"])) or "()") for one in found]
    return ", ".join(texts[:SHOWN] + (["..."] if len(texts) > SHOWN else []))


def answer(framework, final, found, numbers, told):
    target = final.target
    options = ", ".join(inputs.option(each) for each in final.inputs)
    count = "{:,} parameters".format(numbers["parameters"]) if numbers["parameters"] else "no parameters"
    message = "{}: {}; inputs {} from {}"
    summary = message.format(building.NAMES.get(framework, framework), count, options, found.origin)
    if len(numbers["outputs"]) > 1:
        summary += "; {} outputs: {}".format(len(numbers["outputs"]), shown(numbers["outputs"]))
    if told:
        summary += "; Stele passes {}".format(", ".join(told))
    return dict(
        numbers,
        framework=framework,
        inputs=[inputs.as_dict(each) for each in final.inputs],
        inferred_from=found.origin,
        examples=found.place,
        target=None if target is None else inputs.as_dict(target),
        summary=summary,
    )
