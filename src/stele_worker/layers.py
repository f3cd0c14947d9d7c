"""What single layers return, of a recipe whose layers are functions of (net, name, x, ...)."""


def outputs(recipe, layers, run):
    """watch(x) -> {name: output} of what the functions ``layers`` of a recipe return while run(x) is evaluated.

    ``recipe`` is the namespace of its module, in which the functions are replaced for that moment. What a compiler
    holds cannot be watched, so ``run`` must not be compiled.
    """

    def watch(x):
        seen, own = {}, {layer: recipe[layer] for layer in layers}

        def noting(layer):
            def noted(net, name, *rest):
                seen[name] = layer(net, name, *rest)
                return seen[name]

            return noted

        recipe.update({name: noting(layer) for name, layer in own.items()})
        try:
            run(x)
        finally:
            recipe.update(own)
        return seen

    return watch
