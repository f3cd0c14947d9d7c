"""Checkpoints of transformers: saved by one release and read by another, which renames and fuses parameters."""

from stele_worker.models.errors import WeightsError


def save(net, folder):
    """Save a model of transformers as its library does. Do nothing for another model, or one that cannot be saved."""
    if not any(cls.__module__.startswith("transformers.") for cls in type(net).__mro__):
        return
    try:
        net.save_pretrained(folder)
    except Exception as error:  # parity is then compared without it, or not comparable
        print("save_pretrained: {}".format(error))


def read(net, folder):
    """Return {name: array} of a checkpoint, under the names of this release. Raise WeightsError if it lacks some."""
    loaded, info = type(net).from_pretrained(folder, config=net.config, output_loading_info=True)
    lacking = sorted(map(str, list(info["missing_keys"]) + list(info.get("mismatched_keys") or ())))
    if lacking:
        message = "NEW's library does not find {} in the checkpoint that OLD's library saved."
        raise WeightsError(message.format(", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")))
    values = {name: value.detach().cpu() for name, value in loaded.state_dict().items()}
    return {name: (value.float() if value.is_floating_point() else value).numpy() for name, value in values.items()}
