"""Inspect a user's model before anything is measured: framework, inputs, target and output."""

import contextlib
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
    sources,
    specs,
    targets,
    task,
    weights,
)
from stele_worker.models.errors import SpecError, UserCodeError, describe_error, raise_internal, user_code
from stele_worker.models.signatures import required
from stele_worker.models.task_files import TaskFile

SHOWN = 4  # outputs in the summary


class Found(NamedTuple):
    """The inputs of a model, and where they come from."""

    inputs: tuple  # of Input
    origin: str  # for people
    values: Optional[dict] = None  # {label: array}, of example_inputs()
    place: Optional[str] = None  # of the function that gave the values: "model" or "module"


def inspect(model):
    """Return what a model is, as a dict. Raise SpecError or UserCodeError.

    It uses the CPU: do not configure the worker after it.

    framework        as in ``stele_worker.frameworks``
    inputs, target   dicts of Input; target is None if the model returns its loss unasked
    inferred_from    "example_inputs()", "the Hugging Face config", "the signature and the first layer",
                     "the command line"
    examples         "model" or "module": where example_inputs() is; None if its values are not used
    loss             "the model's own", "cross-entropy over the last axis" or "mean squared error"; of a compiled
                     Keras model that of ``compile``
    untrained        why its training is not measured, with what to do; None if it is
    parameters       how many numbers they are
    outputs          [{"name", "shape", "dtype"}] of all arrays that inference returns; see ``outputs.named``
    output           shape of the main output
    main             the name of the main output, of which a loss is computed
    remark           how ``pretrained`` was matched, if not by name; else None
    built            see ``stele_worker.models.facts``; None for a recipe file that defines everything
    deterministic    whether two calls agree within a thousandth
    accuracy         whether right answers can be counted, which only a task file does
    summary          a line for printing, without the loss

    The verb ``inspect`` adds

    files            absolute paths of the user's modules, and of the project's files that were read: see ``reads``
    """
    source = sources.find(model)
    cpu.use()
    file = file_inspection.task_file(model, source)
    draft = file_inspection.first_task(model, source, file)
    net = built_net = building.build(source, 0, draft)
    framework = framework_of(model, net)
    recipe, module = recipe_for(model, source, framework, file), frameworks.load(framework)
    if file is None:
        model_inputs = inputs_of(model, source, net, recipe)
        draft = task.make(model, model_inputs.inputs, None, "smoke", values=model_inputs.values, source=source)
    else:
        model_inputs = Found(draft.inputs, file.spec)
    with failures(model, model_inputs.inputs, source):
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
    numbers["output"] = next(output["shape"] for output in numbers["outputs"] if output["name"] == main)
    numbers["accuracy"] = file is not None and file.counts()
    numbers["untrained"] = why_untrained(recipe, built_net, len(first))
    flag_names = [
        name for name in calling.flag_names(recipe.function(net)) if name in getattr(recipe, "FLAGS", calling.FLAGS)
    ]
    numbers["loss"] = loss_of(recipe, net, final, numbers)
    numbers.update(built=built, remark=weights.remark())
    return answer(framework, final, model_inputs, dict(numbers, deterministic=all_agree(first, again)), flag_names)


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
    return {name: numpy.asarray(outputs.fetch(array, module.fetch)) for name, array in outputs.named(value).items()}


def described(value):
    """Return the name, shape and dtype of each output."""
    return [
        {"name": name, "shape": [int(size) for size in array.shape], "dtype": inputs.dtype_of(array)}
        for name, array in outputs.named(value).items()
    ]


def resolve(model, framework, scale="paper", seed=0, dtype="float32"):
    """Return (Task, recipe) of a model in a framework. Raise SpecError or UserCodeError.

    The recipe has the names of ``models.recipe_files``. If ``model`` lacks inputs or target, the model is built and
    called once to find them: give both arms of a comparison what ``inspect`` returned.
    """
    derived = frameworks.part(framework, "model")
    if derived is not None:
        derived.seed(seed)  # a model that stands in a module gets its weights at the import
    source = sources.find(model)
    recipe = recipe_for(model, source, framework)
    recipe.seed(seed)
    return complete(model, source, recipe, framework, scale, seed, dtype), recipe


def resolve_file(model, scale, seed, dtype):
    """Return (Task, recipe, TaskFile) of a recipe with a task file. Raise SpecError or UserCodeError."""
    source = sources.find(model)
    file = TaskFile(model, source)
    recipe = recipe_files.recipe(model, source, file.weights(seed))
    recipe.seed(seed)
    return file.task(scale, seed, dtype), recipe, file


def complete(model, source, recipe, framework, scale, seed, dtype):
    """Return the Task of a model; infer the inputs and the target if the host left them out."""
    module = frameworks.load(framework)
    if model.get("inputs") and "target" in model:
        specs_of_inputs, values = inputs.parse(model["inputs"]), None
        target = inputs.parse([model["target"]])[0] if model["target"] else None
        if model.get("examples"):
            examples = own_examples(model, source, framework, recipe, seed)
            check_examples(model["spec"], specs_of_inputs, examples)
            values = examples.values
        return task.make(model, specs_of_inputs, target, scale, seed, dtype, values, source)
    net = building.build_for(source, framework, seed, file_inspection.first_task(model, source, None))
    result = inputs_of(model, source, net, recipe, seed)
    draft = task.make(model, result.inputs, None, scale, seed, dtype, result.values, source)
    with failures(model, result.inputs, source):
        return targets.complete(draft, recipe, recipe.prepare(net, draft), module.put)


def check_examples(spec, expected, examples):
    """Raise SpecError if example_inputs() returns something else than in the inspection: nothing else stands for it."""
    changed = inputs.difference(expected, examples.inputs)
    if changed is None and examples.values is None:
        changed = "the numbers of each array are equal now"
    if changed is not None:
        message = "{}: example_inputs() does not return what it returned in the inspection: {}."
        raise SpecError(message.format(spec, changed))


def own_examples(model, source, framework, recipe, seed):
    """Return what example_inputs() of this arm returns. Raise SpecError if it is missing."""
    net = building.build_for(source, framework, seed) if model["examples"] == "model" else None
    examples = example_inputs(source, net, framework, recipe, seed)
    if examples is None:
        raise SpecError("{} has no example_inputs() any more.".format(model["spec"]))
    return examples


def framework_of(model, net):
    """Return the framework of a model, or the one after which a recipe file is named."""
    return recipe_files.framework(model) if model.get("recipe") else specs.framework_of(net)


def recipe_for(model, source, framework, file=None):
    """Return the recipe of a model: derived, or from the file of the user."""
    if not model.get("recipe"):
        return frameworks.part(framework, "model")
    return recipe_files.recipe(model, source, None if file is None else file.weights(0))


def inputs_of(model, source, net, recipe, seed=0):
    """Return the Found inputs. Raise SpecError if they cannot be inferred."""
    layers = recipe.layers(net)
    if model.get("inputs"):
        result = Found(inputs.parse(model["inputs"]), "the command line")
    else:
        result = example_inputs(source, net, framework_of(model, net), recipe, seed)
        result = result or Found(*recipe.inputs(net, source) or (None, None))
    if not result.inputs:
        raise SpecError(hint(source.spec, required(recipe.function(net))))
    return result._replace(inputs=inputs.complete(result.inputs, recipe.vocabulary(net) if layers else None))


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
            items, values = inputs.from_examples(examples, double=framework == "jax")
            if inputs.show_shapes_alone(values):
                return Found(items, "example_inputs()")
            return Found(items, "example_inputs()", values, place)
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
def failures(model, items, source):
    """Turn an exception of the model into a SpecError with the shapes of its inputs and the user's frames."""
    try:
        yield
    except (SpecError, UserCodeError):
        raise
    except BaseException as error:  # also sys.exit()
        raise_internal(error)
        if source.kind == "recipe":
            raise recipe_files.failure(source, items, error) from error
        shapes = " ".join("--input " + inputs.option(each) for each in items)
        message = "{} fails with these inputs: {}\n{}\nIf the inputs are wrong, write others after --input."
        reason = describe_error(error, model["folder"])
        raise SpecError(message.format(model["spec"], shapes, reason)) from error


def example(final, put):
    """Return one batch of the inputs on the device."""
    return [put(array) for array in task.example(final, final.batch)[: len(final.inputs)]]


def shown(facts):
    """Return the first outputs as text, such as ``logits 4x5, boxes 4x4, ...``."""
    texts = ["{} {}".format(output["name"], "x".join(map(str, output["shape"])) or "()") for output in facts]
    return ", ".join(texts[:SHOWN] + (["..."] if len(texts) > SHOWN else []))


def answer(framework, final, model_inputs, numbers, flag_names):
    target = final.target
    options = ", ".join(inputs.option(each) for each in final.inputs)
    count = "{:,} parameters".format(numbers["parameters"]) if numbers["parameters"] else "no parameters"
    message = "{}: {}; inputs {} from {}"
    summary = message.format(specs.NAMES.get(framework, framework), count, options, model_inputs.origin)
    if len(numbers["outputs"]) > 1:
        summary += "; {} outputs: {}".format(len(numbers["outputs"]), shown(numbers["outputs"]))
    if flag_names:
        summary += "; Stele passes {}".format(", ".join(flag_names))
    return dict(
        numbers,
        framework=framework,
        inputs=[inputs.as_dict(each) for each in final.inputs],
        inferred_from=model_inputs.origin,
        examples=model_inputs.place,
        target=None if target is None else inputs.as_dict(target),
        summary=summary,
    )
