"""Record the outputs of single layers, for recipes in which each layer is a function of (net, name, x, ...)."""


def outputs(recipe, layers, run):
    """Return record(*inputs) -> {name: output}: what the functions ``layers`` return during run(*inputs).

    ``recipe`` is the namespace of the recipe's module; the functions are replaced there while ``run`` runs.
    Layers inside compiled code cannot be recorded, so ``run`` must not be compiled.
    """

    def record(*inputs):
        layer_outputs, originals = {}, {layer: recipe[layer] for layer in layers}

        def recording(layer):
            def call(net, name, *rest):
                layer_outputs[name] = layer(net, name, *rest)
                return layer_outputs[name]

            return call

        recipe.update({name: recording(layer) for name, layer in originals.items()})
        try:
            run(*inputs)
        finally:
            recipe.update(originals)
        return layer_outputs

    return record
