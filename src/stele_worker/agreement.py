"""Compute what one recipe computes on a small fixed batch; the host compares it with the golden numbers.

Every phase answers with "task", the Task's fingerprint, and

infer    unequal     parameters that read back differently than they were loaded, see ``find_unequal``
         layers      sketches of the layers' outputs: {layer: sketch}; None if the recipe cannot show them
         logits      (batch, classes), or features; the sketch of a large output
         outputs     of a model: what it returns beside its main output, and that if it must be equal: {name: as
                     ``describe_output``}
         ignored     of a model: names and types of what it returns and cannot be compared
         repeats     whether a second call gave the same, see ``calls_agree``
         weights     how the weights of another arm were loaded, see ``models.weights``: {"names", "way"}
         own, equal, sizes, places, files   with ``own``: see ``own_weights``
         inputs      with ``own``: {input: relative error of the values of example_inputs()}, 0 within rounding; None
                     for another shape, and if an element that differs is not finite
         tracked     whether a gradient could be taken through the logits; None if the framework cannot say
train    unequal     as above
         norms       the Euclidean norm of each initial parameter, if the network initialised itself
         loss        of the first step
         gradients   {parameter: sketch}
         updates     the change of every parameter after 1 and 10 steps: {"1": {parameter: sketch}, "10": ...}; of a
                     user's model the change of everything that is stored, such as running statistics
         losses      of each step
         trained     as logits, of a user's model after the last step
repeat   losses      with dropout, from the framework's seed
         digest      a hash of all parameters after those steps
devices  losses      of each step: the means over the ranks
         gradients   of the first step as rank 0 has them: {parameter: sketch}
         ranks       of each device: hashes of its "samples", and "digest" of its parameters after those steps
         statistics  of batch normalisation: "own" of each device, or "all": of the batch of all devices; or None
         score       of that batch after SCORE_STEPS more steps, as rank 0 has it; None if the Task has no score

Both have ``dtypes`` of a user's model: see ``dtypes_of``. With ``operations``, they have ``inference_operations`` and
``training_operations`` of a step, {operation: calls}; None if the framework's profiler does not say.

Dropout is off in train, because no two frameworks draw the same masks. It is on in infer, where it must have no effect.
"""

import base64
import hashlib
import zlib
from typing import Any, NamedTuple

import numpy

from stele_worker.measurement import inputs_of, is_of_user, make_batches, predictions, score
from stele_worker.models import outputs, reads
from stele_worker.models import weights as loading
from stele_worker.models.inputs import compare, dtype_of, equal, has_more_digits, to_array
from stele_worker.ranks import ranks
from stele_worker.sketch import sketch

UPDATE_STEPS = (1, 10)  # the numbers of steps after which the parameters are read
BFLOAT16 = 2.0**-8  # relative rounding error of bfloat16
LARGEST_OUTPUT = 4096  # numbers; of a larger output the sketch is sent
REPEAT_STEPS = 5  # steps whose bits the phase repeat compares
HALF = ("float16", "bfloat16")
SEEDS = 32  # with which a model is built at most, to find the elements that no seed changes
FEW = 4  # seeds, after which it is seen whether SEEDS can be enough
CHANCE = 1e-3  # elements that seeds change and that would look as if they did not
SCORE_STEPS = 60  # more steps before the score of several devices, until running statistics have settled


def check(
    framework,
    subject,
    phase,
    save=None,
    flip=False,
    checkpoint=None,
    save_inputs=None,
    own=False,
    redraw=False,
    operations=False,
):
    """Return the numbers of ``phase``, "infer", "train" or "repeat", from the subject's initial weights.

    ``save`` is a path: the initial weights of a model are written there, as an .npz file, for another arm. Into the
    folder ``checkpoint``, the model's library writes them as it does, if it is one that renames parameters. With
    ``flip`` the batch is computed in reverse order: the differences show what rounding does. ``save_inputs`` is a path:
    the values of example_inputs() are written there. With ``own``, what this arm's own functions return is compared
    with the weights and the inputs of the other arm; with ``redraw``, from several seeds. With ``operations``, the
    framework's profiler counts those of a step.
    """
    batch, weights = subject.parity_batch(), subject.weights()
    if save_inputs is not None and getattr(subject.task, "values", None):
        numpy.savez(save_inputs, **subject.task.values)
    numbers = {"task": fingerprint(subject.task, weights or {}, batch)}
    arranged = [array[::-1] if flip else array for array in subject.arrange(batch)]
    arrays = [framework.put(numpy.ascontiguousarray(array)) for array in arranged]
    context = Context(framework, subject, weights, flip, save, checkpoint, len(arranged[0]), operations)
    try:
        numbers.update(PHASES[phase](context, arrays))
        if loading.last:
            numbers["weights"] = dict(loading.last)
        if own:
            numbers.update(own_weights(context, redraw), inputs=subject.input_errors())
    except Exception as error:
        cause = find_rounded(context)
        if cause is None:
            raise
        raise RuntimeError("{}. Possible cause: {}".format(str(error).rstrip("."), cause)) from error
    return numbers


def own_weights(context, redraw=False):
    """Return how the weights that this arm itself builds differ from those of the other arm, which it has loaded.

    own     {parameter: relative error}, of those that differ by more than rounding; None for another shape
    equal   parameters that do not differ
    sizes   {parameter: how many numbers it has}, of those that differ
    places  {parameter: a mask, see ``packed``}, of those in which only some elements differ
    files   files of weights that were opened to build the model

    With ``redraw`` an element differs if it does with any of several seeds.
    """
    if context.weights is not None:  # a task file has given them
        return {"own": {}, "equal": [], "sizes": {}, "places": {}, "files": []}
    _, loaded = context.network(context.subject)
    task, recipe = context.subject.task, context.subject.recipe
    model = dict(task.model, weights=None, checkpoint=None)

    def build(number):
        return recipe.network(task._replace(model=model, seed=(task.seed + number) % 2**32))

    net = build(0)
    facts = recipe.facts(net)["arrays"] if hasattr(recipe, "facts") else []
    dtypes, built = {array["name"]: array["dtype"] for array in facts}, context.read(net)
    del net

    def differences(arrays):
        return {
            name: compare(array, loaded.get(name), dtypes.get(name), computed=True) for name, array in arrays.items()
        }

    comparisons = differences(built)
    changed = {name: mask for name, (mask, error) in comparisons.items() if error != 0}
    places = {name: mask for name, mask in changed.items() if mask is not None and not mask.all()}
    if redraw and places:
        places = drawn_places(places, built, lambda number: context.read(build(number)), differences)
    return {
        "own": {name: comparisons[name][1] for name in changed},
        "equal": [name for name in comparisons if name not in changed],
        "sizes": {name: built[name].size for name in changed},
        "places": {name: packed(mask) for name, mask in places.items()},
        "files": reads.of_weights(task.model),
    }


def drawn_places(places, built, build, differences):
    """Return masks of the elements that seeds change, of the parameters in which this is certain: the others are fixed.

    ``places`` are those that one seed changes, in ``built``. Two seeds may draw one value for an element, so ``build``
    is called with further numbers, until no element of a parameter is left by chance: how often a seed draws the value
    of the other arm is seen at the elements that other seeds change. Nothing is certain of a
    parameter that a second build does not change: perhaps it was made at the import.
    """
    counts = {name: int(mask.sum()) for name, mask in places.items()}
    result, open_ = {}, dict(places)
    for number in range(1, SEEDS):
        arrays = build(number)
        comparisons = differences({name: arrays[name] for name in open_})
        if number == 1:
            open_ = {name: mask for name, mask in open_.items() if not equal(arrays[name], built[name]).all()}
        for name, mask in list(open_.items()):
            counts[name] += int(comparisons[name][0].sum())
            mask = open_[name] = mask | comparisons[name][0]
            drawn, builds = int(mask.sum()), number + 1
            rate = (builds * drawn - counts[name] + 1.0) / (builds * drawn + 1.0)
            certain, possible = (mask.size * rate**most < CHANCE for most in (builds, SEEDS))
            if certain:
                result[name] = mask
            if certain or (builds >= FEW and not possible):
                del open_[name]
        if not open_:
            break
    return result


def packed(mask):
    """Return a mask as text: base64 of the compressed bits, eight elements in a byte, in C order."""
    return base64.b64encode(zlib.compress(numpy.packbits(mask.ravel()).tobytes())).decode("ascii")


def dtypes_of(context, net, inputs, layers):
    """Return the dtypes in which a user's model computes. ``layers`` are the outputs of its layers.

    parameters  {parameter: dtype} of those with fewer bits than float32
    layers      {layer: dtype of its output}, in order of execution
    others      dtypes of the raw output, and those in which layers of Keras compute
    """
    recipe, task = context.subject.recipe, context.subject.task
    facts = recipe.facts(net)["arrays"] if hasattr(recipe, "facts") else []
    output = outputs.main(recipe.raw(net, task._replace(target=None))(*inputs))
    layer_dtypes = (str(getattr(layer, "compute_dtype", "")) for layer in recipe.layers(net))
    computed = {dtype for dtype in layer_dtypes if "float" in dtype}  # that of an input may be of integers
    return {
        "parameters": {array["name"]: array["dtype"] for array in facts if array["dtype"] in HALF},
        "layers": {name: dtype_of(value) for name, value in layers.items()},
        "others": sorted(computed | ({dtype_of(output)} if hasattr(output, "dtype") else set())),
    }


def find_rounded(context):
    """Return that a parameter was rounded when it was loaded, or None. Calls may then fail, because dtypes differ."""
    net, weights = context.network(context.subject)
    unequal = find_unequal(context.read(net), context.subject.loaded(weights))
    rounded = ((name, facts["rounded"]) for name, facts in unequal.items() if facts["rounded"])
    return next(("{} is read back rounded to {}".format(*pair) for pair in rounded), None)


class Context(NamedTuple):
    """What every phase needs."""

    framework: Any
    subject: Any
    weights: Any  # None: the network has initialised itself
    flip: bool
    save: Any
    checkpoint: Any
    batch: int  # samples; arrays on a device may not tell
    counts_operations: bool = False

    def network(self, subject):
        """Return a network with its initial weights, and these weights: {parameter: array}."""
        recipe = subject.recipe
        loading.last.clear()
        net = recipe.load(recipe.network(subject.task), self.weights)
        weights = self.weights if self.weights is not None else self.read(net)
        if self.save is not None:
            numpy.savez(self.save, **weights)
        if self.checkpoint is not None and hasattr(recipe, "save_checkpoint"):
            recipe.save_checkpoint(net, self.checkpoint)
        return net, weights

    def operations(self, step):
        """Return {operation: calls} of step(), as the framework's profiler counts them; None if it does not."""
        if not self.framework.HAS_PROFILER:
            return None
        try:
            counted = self.framework.profile(lambda: self.framework.wait(step()))
        except Exception:  # nothing is judged by it
            return None
        return {name: calls for name, (_, calls) in counted.items()}

    def read(self, net):
        """Return the parameters of a network as in the Task: {parameter: array}."""
        return self.to_neutral(self.subject.recipe.stored(net))

    def to_neutral(self, values):
        """Return a framework's values of parameters as NumPy arrays in the Task's layout."""
        neutral = self.subject.recipe.neutral
        return {name: neutral(name, self.fetch_all_digits(value)) for name, value in values.items()}

    def fetch_all_digits(self, value):
        """Return a framework's value as ``fetch`` does, in float32; numbers that float32 does not hold as they are."""
        if isinstance(value, numpy.ndarray):
            return value
        exact = hasattr(value, "dtype") and has_more_digits(dtype_of(value))
        return to_array(value)[0] if exact else self.framework.fetch(value)

    def fetch(self, value):
        """Return an output in the order of the batch as it was made. A text, which stands for a value, stays."""
        if isinstance(value, str):
            return value
        has_dtype = hasattr(value, "dtype")
        array = outputs.fetch(value, self.fetch_all_digits) if has_dtype else self.framework.fetch(value)
        axis = self.axis_of_batch(array.shape)
        return numpy.flip(array, axis) if self.flip and axis is not None else array

    def axis_of_batch(self, shape):
        """Return the first axis if it has the length of the batch, else the only other one that has; None if none has.

        The state of a recurrent layer has the batch second.
        """
        axes = [axis for axis, size in enumerate(shape) if size == self.batch]
        return axes[0] if axes[:1] == [0] or len(axes) == 1 else None

    def outputs(self, value):
        """Return the main output of an inference step, and the others by name, in the order of the batch as made.

        The main one is among the others, too, if it must be equal.
        """
        if not is_of_user(self.subject.task):
            return self.fetch(value), {}
        arrays = {name: self.fetch(array) for name, array in outputs.named(value).items()}
        arrays.update((name, self.fetch(plain)) for name, plain in outputs.plain(value)[0].items())
        main = outputs.main_name(value)
        return arrays[main], {name: array for name, array in arrays.items() if name != main or outputs.is_exact(array)}


def infer(context, arrays):
    subject, framework = context.subject, context.framework
    inputs = inputs_of(subject.task, arrays)
    net, weights = context.network(subject)
    step = subject.recipe.inference_step(net, subject.task)
    value = step(*inputs)
    logits, others = context.outputs(value)
    second, others_again = context.outputs(step(*inputs))
    layers = layer_outputs(subject, net, inputs)
    numbers = {
        "unequal": find_unequal(context.read(net), expected_parameters(subject.recipe, net, subject.loaded(weights))),
        "layers": None if layers is None else {name: sketch(context.fetch(output)) for name, output in layers.items()},
        "logits": shortened(logits),
        "repeats": all_agree(dict(others, **{"main": logits}), dict(others_again, **{"main": second})),
        "tracked": framework.tracked(main_of(subject, value)),
    }
    if others:
        numbers["outputs"] = {name: describe_output(array) for name, array in others.items()}
    if is_of_user(subject.task):
        numbers["dtypes"] = dtypes_of(context, net, inputs, layers or {})
        numbers["ignored"] = outputs.plain(value)[1]
    if context.counts_operations:
        numbers["inference_operations"] = context.operations(lambda: main_of(subject, step(*inputs)))
    return numbers


def shortened(output):
    """Return an output, or the sketch of a large one."""
    return output if output.size <= LARGEST_OUTPUT else sketch(output)


def main_of(subject, value):
    return outputs.named(value)[outputs.main_name(value)] if is_of_user(subject.task) else value


def describe_output(array):
    """Return {"shape", "numbers": the array, or the sketch of a large one}. The host computes with finite numbers.

    So infinity stands as twice the largest finite number, and NaN as three times: each differs from all others.
    What has no rounding also has "exact": its numbers, or a hash of many, must be equal.
    """
    if isinstance(array, str):
        return {"shape": [], "numbers": array, "exact": True}
    if outputs.is_exact(array):
        large = array.size > LARGEST_OUTPUT
        numbers = hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest() if large else array
        return {"shape": list(array.shape), "numbers": numbers, "exact": True}
    finite = abs(array[numpy.isfinite(array)])
    largest = float(finite.max()) if finite.size and finite.any() else 1.0
    marked = numpy.where(numpy.isnan(array), 3 * largest, numpy.clip(array, -2 * largest, 2 * largest))
    return {"shape": list(array.shape), "numbers": shortened(marked)}


def expected_parameters(recipe, net, weights):
    """Return the parameters that a recipe must hold: all, or those that inference needs if it only infers."""
    if getattr(recipe, "TRAINS", hasattr(recipe, "training_step")):
        return weights
    return {name: array for name, array in weights.items() if name in recipe.stored(net)}


def layer_outputs(subject, net, inputs):
    """Return {layer: output}; None if the recipe cannot show them."""
    if not hasattr(subject.recipe, "activations"):
        return None
    run = subject.recipe.activations(net, subject.task)
    return None if run is None else run(*inputs)


def train(context, arrays):
    subject, fetch = context.subject.without_dropout(), context.framework.fetch
    net, weights = context.network(subject)
    unequal = find_unequal(context.read(net), subject.loaded(weights))
    loss, gradients = subject.recipe.gradients(net, subject.task)(*arrays)
    numbers = {
        "unequal": unequal,
        "loss": float(fetch(loss)),
        "gradients": {name: sketch(value) for name, value in context.to_neutral(gradients).items()},
    }
    names = weights if is_of_user(subject.task) else gradients
    if is_of_user(subject.task):  # the host cannot compute them
        numbers["norms"] = {name: norm(array) for name, array in weights.items()}
    net, weights = context.network(subject)
    step = subject.recipe.training_step(net, subject.task)
    updates, losses = {}, []
    for count in range(1, subject.parity_steps + 1):
        losses.append(run_step(context.framework, step, arrays))
        if count in UPDATE_STEPS:
            updates[str(count)] = updates_since(context.read(net), weights, names)
    numbers.update(updates=updates, losses=losses)
    if is_of_user(subject.task):
        inputs = inputs_of(subject.task, arrays)
        output = subject.recipe.inference_step(net, subject.task)(*inputs)
        numbers["trained"] = shortened(context.outputs(output)[0])
        numbers["dtypes"] = dtypes_of(context, net, inputs, layer_outputs(subject, net, inputs) or {})
    if context.counts_operations:
        numbers["training_operations"] = context.operations(lambda: step(*arrays))
    return numbers


def norm(array):
    """Return the Euclidean norm of the finite numbers: a mask may have infinite ones."""
    return float(numpy.linalg.norm(numpy.where(numpy.isfinite(array), array, 0).astype(numpy.float64)))


def repeat(context, arrays):
    subject = context.subject
    net, _ = context.network(subject)
    step = subject.recipe.training_step(net, subject.task)
    losses = [run_step(context.framework, step, arrays) for _ in range(REPEAT_STEPS)]
    return {"losses": losses, "digest": digest(context.read(net))}


def devices(context, arrays):
    """Train on all devices with the batch divided among them."""
    subject, framework = context.subject.without_dropout(), context.framework
    rows = numpy.arange(context.batch)
    [shard] = make_batches(framework, arrays, [rows])
    net, _ = context.network(subject)
    _, gradients = subject.recipe.gradients(net, subject.task)(*shard)
    gradients = {name: sketch(value) for name, value in context.to_neutral(gradients).items()}
    net, _ = context.network(subject)
    step = subject.recipe.training_step(net, subject.task)
    losses = [run_step(framework, step, shard) for _ in range(subject.parity_steps)]
    stored = framework.on_each_device(subject.recipe.stored, net)
    # each device may have its own running statistics
    trained = [{name: parameters[name] for name in gradients} for parameters in stored]
    of_rank = {"losses": losses, "ranks": states_of_devices(framework, shard, trained)}
    of_rank["score"] = score_of_batch(context, net, step, arrays)
    if ranks.number() > 0:
        return of_rank
    of_ranks = ranks.results(of_rank)
    return {
        "losses": [float(numpy.mean(of_step)) for of_step in zip(*(each["losses"] for each in of_ranks))],
        "gradients": gradients,
        "ranks": [state for each in of_ranks for state in each["ranks"]],
        "statistics": framework.STATISTICS if any(".running_" in name for name in stored[0]) else None,
        "score": of_rank["score"],
    }


def score_of_batch(context, net, step, arrays):
    """Train on, and return the score on the batch, all of which every rank computes; None if the Task has no score.

    The samples have another order in each step, so that the running statistics of each rank become those of all.
    """
    subject, framework = context.subject.without_dropout(), context.framework
    if subject.score is None:
        return None
    rng = numpy.random.RandomState(subject.task.seed)
    for batch in make_batches(framework, arrays, (rng.permutation(context.batch) for _ in range(SCORE_STEPS))):
        run_step(framework, step, batch)
    batch, rows = subject.arrange(subject.parity_batch()), numpy.arange(context.batch)
    return score(subject, predictions(framework, subject, net, batch, [rows]))


def states_of_devices(framework, arrays, networks):
    """Return hashes of the samples and the parameters of each device of this process."""
    samples = list(zip(*map(framework.copies, arrays)))
    copies = {name: [copy for net in networks for copy in framework.copies(net[name])] for name in networks[0]}
    return [
        {
            "samples": digest({str(place): array for place, array in enumerate(of_device)}),
            "digest": digest({name: values[number] for name, values in copies.items()}),
        }
        for number, of_device in enumerate(samples)
    ]


def calls_agree(first, second):
    """Return whether two outputs differ by at most 1/1000 of the largest number: threads may change the sum order.

    Numbers that are not finite must be at the same places. Texts must be equal.
    """
    if isinstance(first, str) or isinstance(second, str):
        return isinstance(first, str) and isinstance(second, str) and first == second
    if first.shape != second.shape:
        return False
    first, second = numpy.asarray(first, numpy.float64), numpy.asarray(second, numpy.float64)
    finite = numpy.isfinite(first) & numpy.isfinite(second)
    same = numpy.array_equal(numpy.isfinite(first), numpy.isfinite(second))
    first, second = numpy.where(finite, first, 0), numpy.where(finite, second, 0)
    return bool(same and (not first.size or abs(first - second).max() <= 1e-3 * abs(first).max()))


def all_agree(first, second):
    """Return whether two calls returned the same outputs: see ``calls_agree``."""
    return list(first) == list(second) and all(calls_agree(first[name], second[name]) for name in first)


def run_step(framework, step, arrays):
    """Return the loss of a step after the step has finished: MXNet gives the loss before it writes statistics."""
    loss = step(*arrays)
    framework.wait(loss)
    return float(framework.fetch(loss))


PHASES = {"infer": infer, "train": train, "repeat": repeat, "devices": devices}


def find_unequal(stored, weights):
    """Return the parameters that do not read back bit for bit as loaded.

    {parameter: {"differ": count of numbers that differ, "of": count of all, "order": whether the same numbers
    came back in a different order, "deviation": their standard deviation, "expected": the Task's, "rounded": the
    dtype that they were rounded to, or None}}. All numbers of a parameter count as different if it is missing or has
    a different shape.
    """
    unequal = {}
    for name, array in weights.items():
        value = numpy.asarray(stored.get(name, ()), array.dtype)
        same_shape = value.shape == array.shape
        if same_shape and equal(value, array).all():
            continue
        unequal[name] = {
            "differ": int((~equal(value, array)).sum()) if same_shape else array.size,
            "of": array.size,
            "order": numpy.array_equal(numpy.sort(value, axis=None), numpy.sort(array, axis=None)),
            "deviation": float(value.std()) if value.size else None,
            "expected": float(array.std()),
            "rounded": rounded_to(value, array) if same_shape and array.dtype == numpy.float32 else None,
        }
    return unequal


def rounded_to(value, array):
    """Return "bfloat16" or "float16" if ``value`` is ``array`` rounded to that dtype, else None."""
    with numpy.errstate(over="ignore"):
        if numpy.array_equal(value, array.astype(numpy.float16).astype(numpy.float32)):
            return "float16"
    bits = numpy.ascontiguousarray(value).view(numpy.uint32)  # bfloat16 is the upper half of float32
    close = (abs(value - array) <= BFLOAT16 * abs(array)).all()
    return "bfloat16" if close and not (bits & 0xFFFF).any() else None


def updates_since(stored, weights, names):
    """Return the change since ``weights`` of each of ``names``: {parameter: sketch}; of another shape, all of it."""
    return {name: sketch(change(stored[name], weights[name])) for name in names if name in stored}


def change(array, before):
    """Return the difference of two arrays, 0 where they are equal, also where they are not finite."""
    if array.shape != before.shape:
        return array
    with numpy.errstate(invalid="ignore"):
        return numpy.where(equal(array, before), 0, numpy.asarray(array, numpy.float64) - before)


def digest(arrays):
    """Return a hash of the bits of named arrays."""
    sha = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        sha.update(name.encode() + numpy.ascontiguousarray(array, numpy.float32).tobytes())
    return sha.hexdigest()


def fingerprint(task, weights, batch):
    """Return a short hash of the inputs of the golden numbers: constants, initial weights and batch."""
    # these fields depend on the scale or the precision and do not change the mathematics
    sizes = {"train", "test", "epochs", "batch", "dtype", "model", "values"}
    constants = [item for item in task._asdict().items() if item[0] not in sizes]
    sha = hashlib.sha256(repr(constants).encode())
    for array in list(weights.values()) + list(batch):
        sha.update(array.tobytes())
    return sha.hexdigest()[:16]
