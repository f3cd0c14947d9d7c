"""What one recipe computes on a small fixed batch; numbers as docs/protocol.md describes them."""
module Agreement

using ..Tasks

const BATCH = Dict("cnn" => 16, "gru" => 16, "resnet50" => 2)
const STEPS = Dict("cnn" => 10, "gru" => 10, "resnet50" => 1)

"""Compute the numbers of a phase, "train" or "infer", from the Task's seeded weights."""
function check(framework, recipe, task, phase)
    weights = Tasks.seeded(task)
    x, y = Tasks.example(task, BATCH[task.name])
    fingerprint = Tasks.fingerprint(task, weights, x, y)
    x, y = framework.put(Tasks.arranged(x, recipe.LAYOUT)), framework.put(y)
    numbers = PHASES[phase](framework, recipe, task, Dict(weights), x, y)
    return merge((task = fingerprint,), numbers)
end

function inference(framework, recipe, task, weights, x, y)
    step = recipe.inference_step(recipe.load(recipe.network(task), weights), task)
    logits = framework.fetch(step(x))  # (classes, batch)
    return (logits = [logits[:, i] for i in axes(logits, 2)],)
end

function training(framework, recipe, task, weights, x, y)
    task = Tasks.without_dropout(task)
    loss, gradients = recipe.gradients(recipe.load(recipe.network(task), weights), task)(x, y)
    norms = Dict(name => norm(framework.fetch(gradient)) for (name, gradient) in gradients)
    step = recipe.training_step(recipe.load(recipe.network(task), weights), task)
    losses = [Float64(framework.fetch(step(x, y))) for _ in 1:STEPS[task.name]]
    return (loss = Float64(framework.fetch(loss)), gradient_norms = norms, losses = losses)
end

const PHASES = Dict("train" => training, "infer" => inference)

"""The Euclidean norm, summed in double precision."""
norm(array) = sqrt(sum(abs2, Float64.(array)))

end # module
