"""Models that users name instead of writing recipes: a recipe is derived from the model, for each framework.

``model``, the host's dict, holds

spec         "package.module:attribute", "path/file.py:attribute", "torchvision:NAME", "timm:NAME", "keras:NAME",
             "hf:TYPE_OR_FOLDER" or "hf-tiny:TYPE_OR_FOLDER"
folder       absolute path of the user's project: on the import path, and where relative paths begin
inputs       None, or dicts of ``stele_worker.models.inputs.Input``: they are inferred where this is None
target       such a dict, or None for a model that returns its loss unasked; inferred where the key is missing
optimizer    None for plain SGD, or "module:Class"
pretrained   None, or the absolute path of a .safetensors file
weights      None, or the absolute path of an .npz file of what another arm's ``stored`` returned
weights_map  None, or {name of a parameter: name of its array in ``pretrained`` or ``weights``}, where they differ
values       None, or the absolute path of an .npz file of what another arm's example_inputs() returned
checkpoint   None, or the absolute path of a folder with the checkpoint that another arm's library wrote
recipe       None, or the absolute path of ``recipes/<task>/<framework>.py``; ``spec`` is then its relative path
task         None, or the absolute path of ``tasks/<task>.py``
examples     "module" or "model" if example_inputs() there gives the values of ``inputs``, else None

A derived recipe is a module of this package, named after its framework, with the names of
``stele_worker.recipes``. ``run`` and ``step`` take a batch of arrays: the inputs in order, then the target if
the Task has one; ``inference_step`` and ``activations`` take the inputs alone. A recipe has these as well:

prepare(model, task) -> net    a model as ``network`` returns it
raw(net, task)                 call(*batch) -> all that the model returns, in inference, as of ``inference_step``
inputs(model, source)          (inputs, where they come from), or None
function(model or net)         the function whose parameters are the model's inputs
layers(model)                  its layers in order, as far as they are known
vocabulary(model)              the number of values of its smallest embedding, or None
count(net)                     the number of parameters
facts(net)                     what ``prepare`` returned is made of: see ``stele_worker.models.facts``
seed(value)                    seed the framework's generator
FLAGS                          the names in ``calling.FLAGS`` that it passes, if not all

and where models may have a training of their own

why_untrained(model, number)   why a model with so many outputs is not trained, or None
target_kind(net)               "int" or "float" if the loss of the model needs such a target, else None
loss_name(net, optimizer)      the name of the loss and the optimizer that the model has, or None

SpecError: the user has to change something. UserCodeError: the user's code raised an exception.
"""


def resolve(model, framework, scale="paper", seed=0, dtype="float32"):
    """Return (Task, recipe) of a model in a framework. Raise SpecError or UserCodeError.

    The recipe is a module with the names of ``stele_worker.recipes``. If ``model`` lacks inputs or target, the
    model is built and called once to find them: give both arms of a comparison what ``inspect`` returned.
    """
    from stele_worker.models import inspection

    recipe = inspection.recipe_for(model, framework)
    recipe.seed(seed)
    return inspection.complete(model, framework, scale, seed, dtype), recipe


def resolve_file(model, scale, seed, dtype):
    """Return (Task, recipe, TaskFile) of a recipe with a task file. Raise SpecError or UserCodeError."""
    from stele_worker.models import recipe_files
    from stele_worker.models.task_files import TaskFile

    file = TaskFile(model)
    recipe = recipe_files.recipe(model, file.weights(seed))
    recipe.seed(seed)
    return file.task(scale, seed, dtype), recipe, file


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
    from stele_worker.models import inspection

    return inspection.inspect(model)
