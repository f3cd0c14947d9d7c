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

A derived recipe is ``stele_worker.frameworks.<framework>.model``, with the names of ``models.recipe_files``. ``run``
and ``step`` take a batch of arrays: the inputs in order, then the target if the Task has one; ``inference_step`` and
``activations`` take the inputs alone. A recipe has these as well:

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
