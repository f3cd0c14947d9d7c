"""Find the main output and the loss in the return value of a model of any framework.

An array or a tensor is an object with a ``shape``, so nothing here imports a framework.
"""

NAMES = ("logits", "last_hidden_state", "output", "outputs")


def main(output):
    """Return the logits, the last hidden state, or the first array of a tuple or dict that is not a scalar; or None."""
    if hasattr(output, "shape"):
        return output
    if hasattr(output, "keys"):  # a dict, and what transformers returns
        for name in NAMES:
            if name in output and output[name] is not None:
                return output[name]
        output = [output[name] for name in output]
    found = (main(item) for item in output) if isinstance(output, (tuple, list)) else ()
    return next((item for item in found if item is not None and len(item.shape)), None)


def loss(output):
    """Return the entry "loss" of an output, or its scalar; None if there is neither."""
    if hasattr(output, "shape"):
        return output if len(output.shape) == 0 else None
    if hasattr(output, "keys"):
        return output.get("loss")
    named = getattr(output, "loss", None)
    if named is not None or not isinstance(output, (tuple, list)):
        return named
    return next((item for item in output if hasattr(item, "shape") and len(item.shape) == 0), None)
