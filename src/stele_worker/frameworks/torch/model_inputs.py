"""Infer the inputs of a PyTorch model from its Hugging Face config, or from its signature and first layer."""

from stele_worker.models import calling, first_layer
from stele_worker.models.signatures import required

IMAGENET = 224
OTHERS = {"Inception3": 299}  # torchvision's only model for other images


def inputs(model, source):
    """Return (inputs, where they come from), or None if the model does not tell."""
    if any(cls.__module__.startswith("transformers.") for cls in type(model).__mro__):
        from stele_worker.models import huggingface

        result = huggingface.inputs(model)
        return result and (result, "the Hugging Face config")
    if len(required(function(model))) != 1:
        return None
    result = first_layer.infer(layers(model), size_of(model, source.kind))
    return result and ((result,), "the signature and the first layer")


def size_of(model, kind):
    """Return the height and width of the images that a model is made for."""
    for name in ("default_cfg", "pretrained_cfg"):  # timm
        config = getattr(model, name, None)
        if isinstance(config, dict) and config.get("input_size"):
            return config["input_size"][-1]
    if isinstance(getattr(model, "image_size", None), int):
        return model.image_size
    return OTHERS.get(type(model).__name__, IMAGENET) if kind == "torchvision" else first_layer.SIZE


def function(net):
    return calling.in_inference(net.forward)


def layers(model):
    return list(model.modules())


def vocabulary(model):
    return first_layer.vocabulary(layers(model))
