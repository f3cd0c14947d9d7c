"""What a model is made of, as the user's code built it: arrays with their dtypes, and names of one array.

arrays    [{"name", "shape", "dtype", "parameter": whether it is trained}] of parameters and buffers that are stored
tied      lists of names that are one array
training  whether the model is in training mode; None if it has no mode
"""

from stele_worker.models.inputs import dtype_of


def facts_of(values, parameters, training=None):
    """Return the facts of ``values``, {name: array}; one array may have several names. ``parameters`` are names."""
    names = {}
    for name, value in values.items():
        names.setdefault(id(value), []).append(name)
    return {
        "arrays": [
            {
                "name": name,
                "shape": [int(size) for size in value.shape],
                "dtype": dtype_of(value),
                "parameter": name in parameters,
            }
            for name, value in values.items()
        ],
        "tied": [group for group in names.values() if len(group) > 1],
        "training": training,
    }
