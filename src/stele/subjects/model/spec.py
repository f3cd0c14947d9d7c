"""The option ``--model``: which model, and how it is trained. Its forms:

package.module:attribute     path/file.py:attribute     a model, or a callable that returns one
torchvision:NAME   timm:NAME   keras:NAME               a model of a library
hf:TYPE_OR_FOLDER  hf-tiny:TYPE_OR_FOLDER               a Hugging Face model; hf-tiny has few, small layers
recipes/<task>/<framework>.py                           a recipe file, with tasks/<task>.py beside recipes/ or without
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from stele import files, schema
from stele.environments import Environment, arms
from stele.environments.arms import Needs
from stele.errors import SteleError
from stele.measuring import content, measure
from stele.measuring.content import NOTHING, Reads
from stele.measuring.measure import Plan
from stele.measuring.run import NO_OPTIONS, Options
from stele.schema import about
from stele.subjects.base import Cell, InOld, OtherArm, Say, Subject
from stele.subjects.model import comparison, inspection, recipes
from stele.subjects.model.inputs import Input, InputFacts

LIBRARIES = {"torchvision": "torch", "timm": "torch", "hf": "torch", "hf-tiny": "torch", "keras": "keras"}
FORMS = "package.module:attribute, path/file.py:attribute, recipes/TASK/FRAMEWORK.py, " + ", ".join(
    f"{name}:NAME" for name in LIBRARIES
)
# what the models of a library need, beside the packages that the user names
PACKAGES = {
    "hf": ("transformers", "torch"),
    "hf-tiny": ("transformers", "torch"),
    "timm": ("timm", "torch"),
    "torchvision": ("torchvision", "torch"),
}
MISTYPED = 0.9  # how similar a name is to a library that was meant
WEIGHTS = ".safetensors"
# files from which code makes a model
LOADED = (".h5", ".keras", ".pb", ".pkl", ".pt", ".pth", WEIGHTS, ".tflite")
# what makes names that are not in the text of a module
MAKES_NAMES = re.compile(r"import\s*\(?\s*\*|\b(?:globals|vars|exec|eval|setattr|__getattr__|__dict__|modules)\b")


def refuse(values: Mapping[str, object]) -> None:
    """Raise SteleError for the first of the options of a model that has a value, because no model is named."""
    for name, value in values.items():
        if value not in (None, (), False):
            option = f"--{name.replace('_', '-')}"
            raise SteleError(f"{option} has no effect without --model. Add --model, or leave out {option}.")


def refuse_task(task: object) -> None:
    """Raise SteleError if a task was typed beside a model."""
    if task:
        raise SteleError(
            "--task has no effect with --model, which replaces the built-in tasks. Leave out one of the two."
        )


class KnownRequest(TypedDict, total=False):
    target: Annotated[
        dict[str, Any] | None,
        about("Only after the inspection: what it is trained on, as an input; null if the model returns its loss"),
    ]


class ModelRequest(KnownRequest):
    """A model that `--model` names."""

    spec: Annotated[str, about("the model, as on the command line")]
    folder: Annotated[str, about("absolute path of the user's project")]
    inputs: Annotated[list[InputFacts] | None, about("as they were typed, or found by the inspection")]
    optimizer: Annotated[str | None, about("`module:Class`; null for SGD")]
    pretrained: Annotated[str | None, about("absolute path of a safetensors file")]
    weights_map: Annotated[
        dict[str, str] | None, about("names of NEW's parameters with OLD's names, from `--weights-map`")
    ]
    weights: Annotated[str | None, about("absolute path of what another arm wrote; null in this document")]
    values: Annotated[str | None, about("as `weights`")]
    checkpoint: Annotated[str | None, about("as `weights`")]
    recipe: Annotated[str | None, about("absolute path of `recipes/<task>/<framework>.py`; null for another model")]
    task: Annotated[str | None, about("absolute path of `tasks/<task>.py`; null without one")]
    examples: Annotated[
        str | None,
        about("`module` or `model`: where `example_inputs()` is, which gives the values of `inputs`; else null"),
    ]


@dataclass(frozen=True)
class Model(Subject):
    """A model of the user: its spec, the folder of the project, and the options that belong to it."""

    spec: str
    folder: Path  # absolute; the user's modules are imported from here
    inputs: tuple[Input, ...] | None = None  # None: the worker infers them
    optimizer: str | None = None  # "module:Class"; None: SGD
    pretrained: Path | None = None  # absolute
    weights_map: dict[str, str] | None = None  # {NEW's name of a parameter: OLD's name}
    target: dict[str, Any] | None = None  # what it is trained on, after an inspection
    inspected: bool = False
    recipe: Path | None = None  # absolute: recipes/<task>/<framework>.py
    task: Path | None = None  # absolute: tasks/<task>.py
    accuracy: bool = False  # after an inspection: whether the task file can count right answers
    reads: Reads = NOTHING  # after an inspection: what its code has read
    examples: str | None = None  # after an inspection: where example_inputs() is

    one_device = "A model of the user is measured on one device. Leave out --devices or --model."
    accuracy_remedy = "Write tasks/TASK.py with labels (docs/your-recipe.md)"

    @classmethod
    def of_request(cls, request: Mapping[str, Any]) -> "Model":
        """Return the model of a record, as far as its name and its verdicts need it."""
        recipe = request.get("recipe")
        return cls(request["spec"], Path(request["folder"]), recipe=None if recipe is None else Path(recipe))

    @property
    def name(self) -> str:
        """The task of a recipe file, else the spec, as tables and file names show it: without spaces."""
        shown = self.spec if self.recipe is None else recipes.task_name(self.recipe)
        return "_".join(shown.split())

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def label(self) -> str:
        return self.spec

    @property
    def words(self) -> list[str]:
        return ["--model", self.spec]

    @property
    def library(self) -> str | None:
        """The library of the model, such as "hf"; None for a model from the user's own code."""
        prefix = self.spec.partition(":")[0]
        return prefix if prefix in LIBRARIES else None

    @property
    def needs(self) -> Needs:
        return Needs(PACKAGES.get(self.library or "", ()))

    @property
    def root(self) -> Path:
        return self.folder

    @property
    def variables(self) -> tuple[str, ...]:
        return self.reads.variables

    def facts(self) -> dict[str, Any]:
        return {"model": self.as_request()}

    def files(self, environment: Environment) -> list[Path]:
        return [*self.sources(), *arms.config_files(environment)]

    def options(self) -> dict[str, str | None]:
        return content.of_options(self.as_request())

    def why_no_metric(self, metric: str) -> str | None:
        if metric == "time-to-target":
            return "needs a built-in task. Leave it out, or leave out --model"
        return None

    def has_accuracy(self, name: str) -> bool:
        return self.accuracy

    def plan(self, cell: Cell, scale: str, options: Options = NO_OPTIONS) -> Plan:
        request, sources = self.as_request(), self.sources()
        return measure.model_plan(cell.task, cell.phase, scale, request, options=options, files=sources)

    def require(self) -> None:
        require_attribute(self)

    def resolve(self, old: Environment, cells: Sequence[Cell], *, timeout: float, say: Say) -> InOld:
        training = any(cell.phase == "train" for cell in cells)
        return comparison.in_old(self, old, training=training, timeout=timeout, say=say)

    def in_environment(self, environment: Environment, *, timeout: float, say: Say) -> tuple["Model", Environment]:
        answer = inspection.inspect(environment, self, timeout=timeout)
        say(f"stele: {answer.describe(training=True)}")
        inspection.check(answer, self, training=False)
        return inspection.resolved(self, environment, answer)

    def with_reads(self, reads: Reads) -> "Model":
        return replace(self, reads=self.reads | reads)

    def reproduction(self) -> dict[str, str]:
        if self.library is not None and self.pretrained is None:
            return {}
        name, _, _ = self.spec.rpartition(":")
        path = self.folder / name
        if not name.endswith(".py") or self.recipe or self.pretrained or not files.is_file(path) or ".." in name:
            raise SteleError(
                f"--bundle cannot contain the model {self.spec}. It can contain a model from a library, and one from "
                "a single file of your project, such as net.py:build. Put the model into one file, or leave --bundle "
                "out."
            )
        return {name: files.read_text(path)}

    def sources(self) -> list[Path]:
        """Return the files that decide what is measured: those of the command line, and those that it needs."""
        place = self.spec.rpartition(":")[0]
        optimizer = f"{(self.optimizer or '').partition(':')[0].replace('.', '/')}.py"
        modules = [self.folder / path for path in (place, optimizer) if path.endswith(".py")]
        typed = [*modules, self.recipe, self.task, self.pretrained]
        return sorted({*self.reads.files, *(path for path in typed if path is not None and files.is_file(path))})

    def as_request(self, other: OtherArm | None = None) -> dict[str, Any]:
        """Return the model as the worker receives it. ``other`` are the files that another arm wrote."""
        other = other or OtherArm()
        inspected = {"target": self.target} if self.inspected else {}  # else the worker finds it out
        return inspected | {
            "spec": self.spec,
            "folder": str(self.folder),
            "inputs": None if self.inputs is None else [each.as_request() for each in self.inputs],
            "optimizer": self.optimizer,
            "pretrained": None if self.pretrained is None else str(self.pretrained),
            "weights_map": self.weights_map,
            **{name: None if path is None else str(path) for name, path in other._asdict().items()},
            "recipe": None if self.recipe is None else str(self.recipe),
            "task": None if self.task is None else str(self.task),
            "examples": self.examples,
        }


def parse(
    spec: str,
    folder: Path,
    *,
    inputs: tuple[Input, ...] | None = None,
    optimizer: str | None = None,
    pretrained: str | None = None,
    weights_map: str | None = None,
) -> Model:
    """Return the model of a command line typed in ``folder``. Raises SteleError if it cannot name a model."""
    if optimizer is not None and not all(optimizer.partition(":")):
        raise SteleError(f"--optimizer {optimizer} is not of the form module:Class, such as torch.optim:AdamW.")
    weights = None if pretrained is None else weights_file(folder, pretrained)
    names = None if weights_map is None else read_map(folder, weights_map)
    place = spec.removesuffix(":network")
    if recipes.is_recipe(folder / place) and (place == spec or Path(place).stem in recipes.FRAMEWORKS):
        check_file(spec, folder / place)
        options = {"inputs": inputs, "optimizer": optimizer, "pretrained": weights, "weights_map": names}
        return of_recipe(folder / place, folder, **options)
    return Model(checked(spec, folder), folder.absolute(), inputs, optimizer, weights, names)


def of_recipe(path: Path, folder: Path, **options: Any) -> Model:
    """Return the model of a recipe file. Its project is ``folder``, or the folder of ``recipes`` outside of it.

    Raises SteleError, with what is missing, if the recipe cannot be derived.
    """
    path, folder = path.resolve(), folder.resolve()
    if not path.is_relative_to(folder):
        folder = path.parents[2]
    reason = recipes.why_unusable(path)
    if reason is not None:
        raise SteleError(f"{path.relative_to(folder)}: {reason}")
    task = recipes.task_file(path)
    spec = path.relative_to(folder).as_posix()
    return Model(spec, folder, recipe=path, task=task if task.is_file() else None, **options)


def checked(spec: str, folder: Path) -> str:
    """Return the spec. Raises SteleError, with the nearest form, if it has none of the known forms."""
    place, colon, attribute = spec.rpartition(":")
    if not (place and colon and attribute) or files.is_file(folder / place):
        refuse_data(spec, Path(place or spec).suffix.lower())
    if not (place and colon and attribute):
        raise SteleError(f"--model {spec} names no model. Use one of: {FORMS}.")
    if place.endswith(".py"):
        check_file(spec, folder / place)
    elif place not in LIBRARIES and not all(part.isidentifier() for part in place.split(".")):
        near = difflib.get_close_matches(place, LIBRARIES, n=1)
        hint = f"Did you mean {near[0]}:{attribute}?" if near else f"Use one of: {FORMS}."
        raise SteleError(f"--model {spec}: {place!r} is neither a module nor a library. {hint}")
    elif near := difflib.get_close_matches(place, set(LIBRARIES) - {place}, n=1, cutoff=MISTYPED):
        raise SteleError(f"--model {spec}: {place!r} is not a library. Did you mean {near[0]}:{attribute}?")
    elif place.startswith("hf") and "/" in attribute and not files.is_folder(folder / attribute):
        raise SteleError(
            f"--model {spec}: there is no folder {attribute}. Stele downloads no weights: name a type, such as bert."
        )
    return spec


def refuse_data(spec: str, suffix: str) -> None:
    """Raise SteleError, with the code that is needed, if the spec names a file of a model or of weights."""
    if suffix == ".onnx":
        raise SteleError(
            f"--model {spec} names no code. Write a recipe that runs the file with ONNX Runtime, and name the recipe: "
            "--model recipes/TASK/numpy.py. docs/your-recipe.md has one."
        )
    if suffix in LOADED:
        raise SteleError(
            f"--model {spec} names no code. Write a function that loads the file and returns the model, and name the "
            "function: --model net.py:build"
        )


def check_file(spec: str, path: Path, *, option: str = "--model") -> None:
    if files.is_file(path):
        return
    if files.exists(path):
        raise SteleError(f"{option} {spec}: {path} is not a regular file.")
    names = [each.name for each in path.parent.glob("*.py")] if files.is_folder(path.parent) else []
    near = difflib.get_close_matches(path.name, names, n=1)
    hint = f" Did you mean {path.with_name(near[0]).name}?" if near else ""
    raise SteleError(f"{option} {spec}: there is no file {path}.{hint}")


def require_attribute(model: Model) -> None:
    """Raise SteleError if the text of the model's file shows that it has no such attribute. Nothing is imported.

    A module that is not in the folder, and a file that makes names while it runs, are left to the worker.
    """
    if model.recipe is not None or model.library is not None:
        return
    place, _, attribute = model.spec.rpartition(":")
    path = model.folder / (place if place.endswith(".py") else f"{place.replace('.', '/')}.py")
    if not files.is_file(path):
        path = path.with_suffix("") / "__init__.py"
    package = model.folder / place.partition(".")[0]
    if not files.is_file(path) and "." in place and files.is_file(package / "__init__.py"):
        raise SteleError(f"--model {model.spec}: there is no module {place} in {package}.")
    if not files.is_file(path):
        return
    text = files.read_bytes(path, files.LARGEST_TEXT).decode(errors="replace")
    name = attribute.partition(".")[0]
    if not re.search(rf"\b{re.escape(name)}\b", text) and not MAKES_NAMES.search(text):
        raise SteleError(f"--model {model.spec}: {path} has no {name!r}. Name a model, or a function that returns one.")


def read_map(folder: Path, text: str) -> dict[str, str]:
    """Return {NEW's name: OLD's name} of a JSON or TOML file. Raises SteleError if it is not one."""
    path = (folder / files.expand(text)).absolute()
    try:
        content = path.read_text(encoding="utf-8")
        names = files.parse_toml(content) if path.suffix == ".toml" else schema.parse(content)
        schema.convert(names, dict[str, str])
    except (OSError, ValueError) as error:
        raise SteleError(
            f"--weights-map {text}: {error}. Write a JSON or TOML file of NEW's names with OLD's names: "
            '{"gate.weight": "router.weight"}'
        ) from None
    result: dict[str, str] = names
    return result


def weights_file(folder: Path, text: str) -> Path:
    path = (folder / files.expand(text)).absolute()
    if path.suffix == WEIGHTS and files.exists(path) and not files.is_file(path):
        raise SteleError(f"--pretrained {text} is not a regular file.")
    if path.suffix != WEIGHTS or not files.is_file(path):
        raise SteleError(f"--pretrained {text} is not an existing {WEIGHTS} file.")
    return path
