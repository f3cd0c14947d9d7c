"""Compute what one recipe computes on a small fixed batch. docs/protocol.md describes the numbers."""
module Agreement

using ..Tasks

const BATCH = Dict("cnn" => 16, "gru" => 16, "resnet50" => 2)
const STEPS = Dict("cnn" => 20, "gru" => 20, "resnet50" => 1)
const UPDATE_STEPS = (1, 10)  # the numbers of steps after which the parameters are read
const REPEAT_STEPS = 5  # steps whose bits the phase repeat compares

"""Return the numbers of a phase, "infer", "train" or "repeat", from the Task's seeded weights."""
function check(framework, recipe, task, phase)
    weights = Tasks.seeded_weights(task)
    x, y = Tasks.example(task, BATCH[task.name])
    fingerprint = Tasks.fingerprint(task, weights, x, y)
    x, y = framework.put(Tasks.to_layout(x, recipe.LAYOUT)), framework.put(y)
    numbers = PHASES[phase](framework, recipe, task, Dict(weights), x, y)
    return merge((task = fingerprint,), numbers)
end

function infer(framework, recipe, task, weights, x, y)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.inference_step(net, task)
    logits = framework.fetch(step(x))  # (classes, batch)
    stored = read_parameters(framework, recipe, net)
    expected = isdefined(recipe, :training_step) ? weights : filter(pair -> haskey(stored, pair.first), weights)
    return (
        unequal = find_unequal(stored, expected),
        layers = nothing,
        logits = [logits[:, i] for i in axes(logits, 2)],
        repeats = calls_agree(logits, framework.fetch(step(x))),
        tracked = nothing,
    )
end

# Return whether two outputs differ by at most 1/1000 of the largest number: threads may change the sum order.
calls_agree(first, second) = maximum(abs, first - second) <= 1e-3 * maximum(abs, first)

function train(framework, recipe, task, weights, x, y)
    task = Tasks.without_dropout(task)
    net = recipe.load(recipe.network(task), weights)
    differences = find_unequal(read_parameters(framework, recipe, net), weights)
    loss, grads = recipe.gradients(net, task)(x, y)
    gradients = to_neutral(framework, recipe, grads)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    updates, losses = Dict(), Float64[]
    for count in 1:STEPS[task.name]
        push!(losses, framework.fetch(step(x, y)))
        if count in UPDATE_STEPS
            updates[string(count)] = updates_since(read_parameters(framework, recipe, net), weights, keys(gradients))
        end
    end
    return (
        unequal = differences,
        loss = Float64(framework.fetch(loss)),
        gradients = Dict(name => sketch(gradient) for (name, gradient) in gradients),
        updates = updates,
        losses = losses,
    )
end

function repeat_training(framework, recipe, task, weights, x, y)
    net = recipe.load(recipe.network(task), weights)
    step = recipe.training_step(net, task)
    losses = [Float64(framework.fetch(step(x, y))) for _ in 1:REPEAT_STEPS]
    return (losses = losses, digest = Tasks.digest(read_parameters(framework, recipe, net)))
end

const PHASES = Dict("train" => train, "infer" => infer, "repeat" => repeat_training)

"""Return the parameters of a network, as in the Task."""
read_parameters(framework, recipe, net) = to_neutral(framework, recipe, recipe.stored(net))

"""Return a framework's values of parameters as arrays in the Task's layout, dimensions reversed."""
to_neutral(framework, recipe, values) =
    Dict(name => recipe.neutral(name, framework.fetch(value)) for (name, value) in values)

"""Return the parameters that do not read back as loaded, and how they differ."""
function find_unequal(stored, weights)
    differences = Dict()
    for (name, array) in weights
        value = get(stored, name, Float32[])
        value == array && continue
        differences[name] = (
            differ = size(value) == size(array) ? count(value .!= array) : length(array),
            of = length(array),
            order = sort(vec(value)) == sort(vec(array)),
            deviation = isempty(value) ? nothing : deviation(value),
            expected = deviation(array),
        )
    end
    return differences
end

deviation(array) = sqrt(sum(abs2, array .- sum(array) / length(array)) / length(array))

"""Return the change of each parameter since `weights`: sketches by name."""
updates_since(stored, weights, names) =
    Dict(name => sketch(Float64.(stored[name]) .- Float64.(weights[name])) for name in names)

"""Return the sketch of an array: its norm, and its sums with cos(i) and cos(2 i), i from 0 in C order."""
function sketch(array)
    values = Float64.(vec(array))
    indices = 0:length(values)-1
    return [sqrt(sum(abs2, values)), sum(values .* cos.(indices)), sum(values .* cos.(2 .* indices))]
end

end # module
