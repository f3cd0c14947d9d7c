"""Build models by their names in torchvision, timm, keras.applications and transformers, without downloads."""

from stele_worker.models.errors import SpecError, torchvision_error
from stele_worker.models.specs import nearest


def factory(library, name, folder):
    """Return a function without arguments that builds the model. Raise SpecError for an unknown name."""
    if library in ("hf", "hf-tiny"):
        from stele_worker.models import huggingface

        return huggingface.factory(name, folder, library == "hf-tiny")
    try:
        return FACTORIES[library](name)
    except SpecError:
        raise
    except ImportError as error:
        message = "{}:{} needs the package {}, which cannot be imported: {}"
        raise torchvision_error(error) or SpecError(message.format(library, name, library, error)) from error
    except Exception as error:
        refusal = torchvision_error(error)
        if refusal is None:
            raise
        raise refusal from error


def torchvision(name):
    from torchvision import models

    check(name, models.list_models(), "torchvision")
    return lambda: models.get_model(name, weights=None)


def timm(name):
    import timm

    check(name.split(".")[0], timm.list_models(), "timm")
    return lambda: timm.create_model(name, pretrained=False)


def keras(name):
    from keras import applications

    names = [each for each in dir(applications) if each[:1].isupper()]
    check(name, names, "keras.applications")
    return lambda: getattr(applications, name)(weights=None)


def check(name, names, library):
    if name not in names:
        raise SpecError("{} has no model {!r}.{}".format(library, name, nearest(name, names)))


FACTORIES = {"torchvision": torchvision, "timm": timm, "keras": keras}
