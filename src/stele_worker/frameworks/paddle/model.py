"""A recipe for a user's Paddle model, in dynamic graphs."""

import paddle
from paddle.nn.functional import cross_entropy, mse_loss

from stele_worker import frameworks
from stele_worker.models import building, calling, first_layer, optimizers, outputs, own_training, weights
from stele_worker.models.facts import facts_of
from stele_worker.models.signatures import parameters, required
from stele_worker.models.task import without_dropout

framework = frameworks.load("paddle")

LAYOUT = None


def network(task):
    net = prepare(building.build_for_task(task, "paddle", seed), task)
    net = load(net, weights.read_files(task.model), task.model)
    if framework.mode in framework.STATIC:
        net.forward = framework.compiled(net.forward)
    return net


def prepare(model, task):
    if without_dropout(task):
        disable_dropout(model)
    return model


def load(net, arrays, model=None):
    if arrays is None:
        return net
    held, optional = stored(net), {name for name, _ in net.named_buffers()}
    fit = weights.match({name: tuple(value.shape) for name, value in held.items()}, arrays, optional, model=model)
    for name, array in fit.items():
        held[name].set_value(array.astype(str(held[name].dtype).split(".")[-1]))
    return net


def facts(net):
    values = net.state_dict()
    return facts_of(values, {name for name, value in values.items() if hasattr(value, "trainable")}, net.training)


def gradients(net, task):
    compute = loss(net, task)
    trainable = {name: weight for name, weight in net.named_parameters() if not weight.stop_gradient}

    def run(*batch):
        net.train()
        net.clear_gradients()
        value = compute(*batch)
        value.backward()
        grads = {name: paddle.zeros_like(w) if w.grad is None else w.grad for name, w in trainable.items()}
        return value.detach(), grads

    return run


def training_step(net, task):
    optimizer, compute = optimizer_of(net, task), loss(net, task)
    net.train()

    def step(*batch):
        value = compute(*batch)
        value.backward()
        optimizer.step()
        optimizer.clear_grad()
        return value.detach()

    return step


def inference_step(net, task):
    net.eval()
    call = calling.make_caller(net, [each.name for each in task.inputs], flags(net, training=False))
    return paddle.no_grad()(lambda *batch: call(*batch))


def raw(net, task):
    net.eval()
    call = calling.make_caller(net, calling.names(task), flags(net, training=False))
    return paddle.no_grad()(lambda *batch: call(*batch))


def stored(net):
    """Return {name: value} of parameters and buffers; a tensor with several names appears once."""
    seen, result = set(), {}
    for name, value in net.state_dict().items():
        if id(value) not in seen:
            seen.add(id(value))
            result[name] = value
    return result


def neutral(name, array):
    return array.copy()  # ``fetch`` may share memory with a parameter, which the next step changes


def activations(net, task):
    """Return run(*inputs) -> {layer: output} of the layers without children, in order of execution."""
    step = inference_step(net, task)

    def run(*batch):
        seen, hooks = {}, []

        def record(name):
            def hook(layer, given, output):
                if paddle.is_tensor(output) and name not in seen:  # of a layer called twice the first time
                    seen[name] = output.clone()  # the next layer may work in place

            return hook

        for name, layer in net.named_sublayers():
            if not layer.sublayers():
                hooks.append(layer.register_forward_post_hook(record(name)))
        try:
            step(*batch)
        finally:
            for hook in hooks:
                hook.remove()
        return seen

    return run


def seed(value):
    paddle.seed(value)


def count(net):
    # running statistics are parameters that no gradient reaches
    return sum(int(weight.size) for weight in net.parameters() if not weight.stop_gradient)


def inputs(model, source):
    """Return (inputs, where they come from), or None if the model does not tell."""
    if len(required(function(model))) != 1:
        return None
    result = first_layer.infer(layers(model))
    return result and ((result,), "the signature and the first layer")


def function(net):
    return calling.in_inference(net.forward)


def flags(net, training):
    """Return the flags of a model. Its class tells them: to_static replaces the method of the model."""
    return calling.flags(type(net).forward, training)


def layers(model):
    return model.sublayers(include_self=True)


def vocabulary(model):
    return first_layer.vocabulary(layers(model))


def disable_dropout(net):
    """Set the rates of the layers of Paddle that have one, and of subclasses of them, to 0."""
    for layer in layers(net):
        own = [cls for cls in type(layer).__mro__ if cls.__module__.split(".")[0] == "paddle"]
        taken = {each.name for cls in own for each in parameters(cls)}
        rates = ["dropout"] + (["p"] if any("Dropout" in cls.__name__ for cls in own) else [])
        for name in taken.intersection(rates):
            if isinstance(getattr(layer, name, None), (int, float)):
                setattr(layer, name, 0.0)


def loss(net, task):
    """Return compute(*batch) -> loss: the model's own, cross-entropy, or for a float target the squared error."""
    own_training.refuse(task, why_untrained(net))
    call = calling.make_caller(net, calling.names(task), flags(net, training=True))
    if task.target is None or task.target.name:
        return lambda *batch: outputs.loss(call(*batch))
    compare = classification_error if task.target.kind == "int" else squared_error
    return lambda *batch: compare(real(outputs.main(call(*batch[:-1]))), batch[-1])


def real(output):
    """Return an output as real numbers; a complex number as two."""
    return paddle.as_real(output) if outputs.is_complex(output) else output


def classification_error(logits, labels):
    if logits.ndim > 2:
        logits = logits.flatten(0, -2)
    return cross_entropy(logits, labels.flatten())


def squared_error(output, target):
    return mse_loss(output, target.reshape(output.shape))


def why_untrained(net, number=1):
    """Return why Stele does not train a model: it has a training of its own; or None."""
    return own_training.describe(net, own_training.TORCH)


def optimizer_of(net, task):
    parameters = [weight for weight in net.parameters() if not weight.stop_gradient]
    if task.optimizer is not None:
        return optimizers.construct(task, ("step", "clear_grad"), parameters=parameters)
    return paddle.optimizer.SGD(task.learning_rate, parameters=parameters)
