"""What one recipe computes on a small fixed batch; numbers as docs/protocol.md describes them."""
module Agreement

using ..Tasks

const BATCH = Dict("cnn" => 16, "gru" => 16, "resnet50" => 2)
const STEPS = Dict("cnn" => 20, "gru" => 20, "resnet50" => 1)
const SHOWN = (1, 10)  # steps after which the parameters are looked at
const REPEATED = 5  # steps of which the bits are compared

"""Compute the numbers of a phase, "infer", "train" or "repeat", from the Task's seeded weights."""
function check(framework, recipe, task, phase)
    weights = Tasks.seeded(task)
    x, y = Tasks.example(task, BATCH[task.name])
    fingerprint = Tasks.fingerprint(task, weights, x, y)
    x, y = framework.put(Tasks.arranged(x, recipe.LAYOUT)), framework.put(y)
    numbers = PHASES[phase](framework, recipe, task, Dict(weights), x, y)
    return merge((task = fingerprint,), numbers)
end

function inference(framework, recipe, task, weights, x, y)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.inference_step(net, task)
    logits = framework.fetch(step(x))  # (classes, batch)
    stored = parameters(framework, recipe, net)
    expected = isdefined(recipe, :training_step) ? weights : filter(pair -> haskey(stored, pair.first), weights)
    return (
        unequal = unequal(stored, expected),
        layers = nothing,
        logits = [logits[:, i] for i in axes(logits, 2)],
        repeats = alike(logits, framework.fetch(step(x))),
        tracked = nothing,
    )
end

# Whether two calls differ by no more than the order in which threads may sum: a thousandth of the largest number.
alike(first, second) = maximum(abs, first - second) <= 1e-3 * maximum(abs, first)

function training(framework, recipe, task, weights, x, y)
    task = Tasks.without_dropout(task)
    net = recipe.load(recipe.network(task), weights)
    differing = unequal(parameters(framework, recipe, net), weights)
    loss, grads = recipe.gradients(net, task)(x, y)
    gradients = neutral(framework, recipe, grads)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    updates, losses = Dict(), Float64[]
    for count in 1:STEPS[task.name]
        push!(losses, framework.fetch(step(x, y)))
        if count in SHOWN
            updates[string(count)] = updates_since(parameters(framework, recipe, net), weights, keys(gradients))
        end
    end
    return (
        unequal = differing,
        loss = Float64(framework.fetch(loss)),
        gradients = Dict(name => sketch(gradient) for (name, gradient) in gradients),
        updates = updates,
        losses = losses,
    )
end

function repetition(framework, recipe, task, weights, x, y)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    losses = [Float64(framework.fetch(step(x, y))) for _ in 1:REPEATED]
    return (losses = losses, digest = Tasks.digest(parameters(framework, recipe, net)))
end

const PHASES = Dict("train" => training, "infer" => inference, "repeat" => repetition)

"""What a network holds, as in the Task."""
parameters(framework, recipe, net) = neutral(framework, recipe, recipe.stored(net))

"""Values of parameters as arrays in the Task's layout, dimensions reversed."""
neutral(framework, recipe, values) =
    Dict(name => recipe.neutral(name, framework.fetch(value)) for (name, value) in values)

"""Each parameter that does not read back as it was loaded, and how."""
function unequal(stored, weights)
    found = Dict()
    for (name, array) in weights
        theirs = get(stored, name, Float32[])
        theirs == array && continue
        found[name] = (
            differ = size(theirs) == size(array) ? count(theirs .!= array) : length(array),
            of = length(array),
            order = sort(vec(theirs)) == sort(vec(array)),
            deviation = isempty(theirs) ? nothing : deviation(theirs),
            expected = deviation(array),
        )
    end
    return found
end

deviation(array) = sqrt(sum(abs2, array .- sum(array) / length(array)) / length(array))

"""How far each of the parameters is from where it started."""
updates_since(stored, weights, names) =
    Dict(name => sketch(Float64.(stored[name]) .- Float64.(weights[name])) for name in names)

"""An array in three numbers: its norm, and its sums with cos(i) and cos(2 i), i from 0 as C lays it out."""
function sketch(array)
    values = Float64.(vec(array))
    places = 0:length(values)-1
    return [sqrt(sum(abs2, values)), sum(values .* cos.(places)), sum(values .* cos.(2 .* places))]
end

end # module
