"""The training that a user's model has of its own. Stele never measures another one in its place without saying so."""

from stele_worker.models.errors import SpecError

TORCH = ("training_step", "train_step")  # methods of a LightningModule, and of similar classes
KERAS = ("train_step", "compute_loss", "fit", "make_train_function")  # that ``fit`` uses
LIBRARIES = ("keras", "tf_keras", "tensorflow", "lightning", "pytorch_lightning", "torch", "paddle", "flax")
ADVICE = (
    "{}. Stele would measure another training. Measure inference alone with --phase infer, or write a recipe "
    "with gradients and training_step: docs/your-recipe.md"
)


def describe(model, names):
    """Return ``it trains by its own train_step`` if a class of the user defines one of these methods; else None."""
    for name in names:
        owner = next((cls for cls in type(model).__mro__ if name in vars(cls)), None)
        if owner is not None and owner.__module__.split(".")[0] not in LIBRARIES:
            return "it trains by its own {}".format(name)
    return None


def refuse(task, reason):
    """Raise SpecError if there is a reason not to train a model."""
    if reason is not None:
        raise SpecError("{}: {}".format(task.name, ADVICE.format(reason)))
