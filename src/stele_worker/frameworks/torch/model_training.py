"""The loss and the optimizer of a user's PyTorch model, and the arithmetic in which it computes."""

import torch
from torch.nn.functional import cross_entropy, mse_loss

from stele_worker import frameworks
from stele_worker.frameworks.torch import model_dropout
from stele_worker.models import calling, optimizers, outputs, own_training
from stele_worker.models.task import without_dropout

framework = frameworks.load("torch")


def loss(net, task):
    """Return compute(*batch) -> loss: the model's own, cross-entropy, or for a float target the squared error."""
    own_training.refuse(task, why_untrained(net))
    flags = calling.flags(net.forward, training=True)
    call = with_precision(calling.make_caller(net, calling.names(task), flags), task)
    if task.target is None or task.target.name:
        return lambda *batch: outputs.loss(call(*batch))
    compare = classification_error if task.target.kind == "int" else squared_error
    return lambda *batch: compare(real(outputs.main(call(*batch[:-1]))).float(), batch[-1])


def why_untrained(net, number=1):
    """Return why Stele does not train a model: it has a training of its own, as a LightningModule has; or None."""
    return own_training.describe(net, own_training.TORCH)


def real(output):
    """Return an output as real numbers; a complex number as two."""
    return torch.view_as_real(output.resolve_conj()) if output.is_complex() else output


def classification_error(logits, labels):
    if logits.ndim > 2:
        logits = logits.flatten(0, -2)
    return cross_entropy(logits, labels.view(-1))


def squared_error(output, target):
    return mse_loss(output, target.view_as(output))


def with_precision(call, task):
    """Return ``call`` with autocast for the Task's dtype, and without dropout if it is off."""
    if task.dtype != "float32":
        call = torch.autocast(framework.device.type, getattr(torch, task.dtype))(call)
    if not without_dropout(task):
        return call

    def call_without_dropout(*values):
        with model_dropout.NoDropout():
            return call(*values)

    return call_without_dropout


def optimizer_of(net, task):
    parameters = [weight for weight in net.parameters() if weight.requires_grad]
    if task.optimizer is not None:
        return optimizers.construct(task, ("step", "zero_grad"), parameters)
    return torch.optim.SGD(parameters, lr=task.learning_rate)
