"""A function of the user: its first call, its further calls, and what it returns."""

import inspect
import sys
from time import perf_counter

from stele_worker import clock, process
from stele_worker.models import importing
from stele_worker.models.errors import SpecError
from stele_worker.models.specs import attribute, parse
from stele_worker.programs import Program, failed, outcome, profiling, timed, timing_of_calls, values

EXAMPLES = "example_inputs"
RETURNED = "return value"


class Main(Program):
    def prepare(self, model):
        [self.spec] = model["arguments"]
        since_start = clock.stopwatch(self.together)
        module, self.function = find(self.spec, self.folder)
        seconds = since_start()
        self.arguments, self.named = arguments_of(self.spec, self.function, module, model["inputs"])
        return seconds, {}

    def collect(self, host):
        return {"items": [{"name": self.spec}], "failures": []}

    def run(self, host, name, following=None):
        start = perf_counter()
        try:
            result = self.call()
            first = perf_counter() - start
            computed = {RETURNED + part: value for part, value in values.describe(result).items()}
            timing = timing_of_calls(self.seconds_of_call)
        except SpecError:
            raise
        except BaseException as error:  # also sys.exit()
            return failed(error, self.folder, perf_counter() - start)
        return outcome("passed", seconds=first, values=computed, timing=timing)

    def rounds(self, host, task, steps, batch, turn=None, limit=None, profile=0, sampler=None, **_):
        """Time the first call, and then rounds of ``batch`` calls each, until they took ``limit`` seconds."""
        process.reset_peak_memory()
        seconds = []
        for calls in clock.within([1] + [batch] * steps, seconds, limit and limit / batch):
            if turn is not None:
                host.pause(len(seconds))
            since_start = clock.stopwatch(self.together and not seconds)
            for _ in range(calls):
                result = self.function(*self.arguments, **self.named)
                wait(result)
            seconds.append(since_start() / calls)
        return timed(seconds, batch, profiling.profile(self.call, profile, sampler) if profile else None)

    def call(self):
        result = self.function(*self.arguments, **self.named)
        if inspect.iscoroutine(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
            raise SpecError(
                "--function {}: it returns a {}, whose body does not run. Name a function that runs it and returns "
                "the result".format(self.spec, type(result).__name__)
            )
        wait(result)
        return result

    def seconds_of_call(self):
        start = perf_counter()
        self.call()
        return perf_counter() - start


def find(text, folder):
    """Return the module and the function that a text names. Raises SpecError if there is none, or UserCodeError."""
    spec = parse(text)
    module = importing.import_place(spec, folder, text)
    function = attribute(module, spec.name, text)
    if not callable(function):
        raise SpecError("{!r} cannot be called: its type is {}".format(text, type(function).__name__))
    return module, function


def arguments_of(spec, function, module, inputs):
    """Return the arguments of a call. Raises SpecError, with the signature, if some are needed and none are given."""
    if inputs is not None:
        import numpy  # after the module of the function, because the import of that is measured

        from stele_worker.models.inputs import parse as parse_inputs
        from stele_worker.models.inputs import sample

        items, random = parse_inputs(inputs), numpy.random.RandomState(0)
        arrays, names = [sample(each, each.shape[0], random) for each in items], [each.name for each in items]
        return (arrays, {}) if None in names else ([], dict(zip(names, arrays)))
    examples = getattr(module, EXAMPLES, None)
    if examples is not None:
        example = examples()
        if isinstance(example, dict):
            return [], example
        return list(example) if isinstance(example, (tuple, list)) else [example], {}
    try:
        signature = inspect.signature(function)
        signature.bind()
    except ValueError:  # of a function in C, which has no signature
        return [], {}
    except TypeError:
        raise SpecError(
            "--function {} needs arguments: {}{}. Write a function {}() in its module that returns them, or use "
            "--input".format(spec, spec.rpartition(":")[2], signature, EXAMPLES)
        ) from None
    return [], {}


def wait(result, depth=0):
    """Wait until the device has computed a result: an array of any framework, or a container of them."""
    if depth > values.DEEPEST:
        return
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        for each in result:
            wait(each, depth + 1)
        return
    if hasattr(result, "block_until_ready"):  # JAX
        result.block_until_ready()
    elif getattr(result, "is_cuda", False):  # PyTorch
        sys.modules["torch"].cuda.synchronize()
    elif hasattr(result, "wait_to_read"):  # MXNet
        result.wait_to_read()
    elif type(result).__module__.startswith("tensorflow") and hasattr(result, "numpy"):
        result.numpy()
    elif type(result).__module__.startswith("cupy"):
        result.device.synchronize()
