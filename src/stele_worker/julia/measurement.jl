"""One launch's measurement of one recipe; an outcome as docs/protocol.md describes it."""
module Measurement

using Statistics: median
using ..ThisProcess, ..Tasks

const PROGRESS_SECONDS = 1.0  # between two progress messages: rare enough not to disturb the steps

"""Run step on each of batches; call each(duration in seconds, result) after it.

The clock starts when a batch lies ready on the device and stops when the step's result has been computed. Young garbage
is collected between two steps; a step that makes more than memory holds collects for itself.
"""
function steps(each, step, batches, wait)
    for batch in batches
        GC.gc(false)
        wait(batch)
        start = time_ns()
        result = step(batch...)
        wait(result)
        each((time_ns() - start) / 1e9, result)
    end
end

"""How many leading steps are not steady, or nothing if the steps never stop trending: see stele_worker/clock.py."""
function steady_from(seconds, window, tolerance)
    for start in 1:length(seconds)-2window
        earlier = median(seconds[start+1:start+window])
        later = median(seconds[start+window+1:start+2window])
        abs(later - earlier) < tolerance * earlier && return start
    end
    return nothing
end

"""Train for the Task's epochs, timing every step, then evaluate."""
function train(framework, recipe, task, host; data, weights, warmup, turn)
    x, y = map(framework.put, samples(recipe, task, data, "train"))
    ThisProcess.forget_peak_memory()
    net = recipe.load(recipe.network(task), Dict(Tasks.initial(task, weights)))
    step = recipe.training_step(net, task)
    rows = [rows for epoch in 0:task.epochs-1 for rows in Tasks.batch_order(task, epoch)]
    report = reporter(host, "train", length(rows))
    seconds, losses = Float64[], Any[]
    ready = in_turns(turn, host)
    batches = ((ready(done); (framework.take(x, row), framework.take(y, row))) for (done, row) in enumerate(rows))
    GC.gc()
    steps(step, batches, framework.wait) do duration, loss
        push!(seconds, duration)
        push!(losses, loss)
        report(length(seconds))
    end
    steady = steady_from(seconds, warmup["window"], warmup["tolerance"])
    unsteady = min(warmup["most"], length(seconds) ÷ 2)
    outcome = common(framework, task, seconds, something(steady, unsteady), steady !== nothing)
    losses = [Float64(framework.fetch(loss)) for loss in losses]
    return merge(outcome, (losses = losses,), evaluation(framework, recipe, net, task, data, host))
end

"""Warm up until steps stop trending, then time the Task's test batches."""
function infer(framework, recipe, task, host; data, weights, warmup, turn)
    x = framework.put(first(samples(recipe, task, data, "test")))
    ThisProcess.forget_peak_memory()
    net = recipe.load(recipe.network(task), Dict(Tasks.initial(task, weights)))
    step = recipe.inference_step(net, task)
    counted = Tasks.whole_batches(task)
    report = reporter(host, "infer", length(counted))
    seconds = Float64[]
    warm(seconds) = steady_from(seconds, warmup["window"], warmup["tolerance"])
    GC.gc()
    ready = in_turns(turn, host)
    keep(duration, _) = (push!(seconds, duration); report(0))
    while warm(seconds) === nothing && length(seconds) < warmup["most"]
        row = counted[mod1(length(seconds) + 1, length(counted))]
        ready(length(seconds) + 1)
        steps(keep, step, ((framework.take(x, row),),), framework.wait)
    end
    steady, unsteady = warm(seconds) !== nothing, length(seconds)
    batches = ((ready(unsteady + done); (framework.take(x, row),)) for (done, row) in enumerate(counted))
    steps(step, batches, framework.wait) do duration, _
        push!(seconds, duration)
        report(length(seconds) - unsteady)
    end
    return common(framework, task, seconds, unsteady, steady)
end

"""Inputs, images in the recipe's layout, and labels."""
function samples(recipe, task, data, part)
    x, y = Tasks.samples(task, data, part)
    return Tasks.arranged(x, recipe.LAYOUT), y
end

"""What training and inference have in common. Memory first: what follows may need more of it."""
function common(framework, task, seconds, warmup, steady)
    return (
        host_memory = ThisProcess.peak_memory(),
        device_memory = framework.peak_memory(),
        seconds = seconds,
        warmup = warmup,
        steady = steady,
        batch = task.batch,
    )
end

"""Accuracy on the Task's test samples."""
function evaluation(framework, recipe, net, task, data, host)
    task.data === nothing && return (accuracy = nothing, evaluated = 0)
    x, y = samples(recipe, task, data, "test")
    x, step, right, rows = framework.put(x), recipe.inference_step(net, task), 0, Tasks.whole_batches(task)
    report = reporter(host, "evaluate", length(rows))
    for (done, row) in enumerate(rows)
        logits = framework.fetch(step(framework.take(x, row)))  # (classes, batch)
        right += count(argmax(logits[:, i]) == y[row[i]] + 1 for i in eachindex(row))
        report(done)
    end
    evaluated = length(rows) * task.batch
    return (accuracy = right / evaluated, evaluated = evaluated)
end

"""ready(step) waits before the first step and after each turn of them: another worker may have its turn."""
in_turns(turn, host) = step -> turn !== nothing && (step - 1) % turn == 0 && host.pause(step - 1)

"""report(done) tells the host how far it is, but seldom."""
function reporter(host, phase, of)
    last = Ref(time_ns())
    return function (done)
        if (time_ns() - last[]) / 1e9 >= PROGRESS_SECONDS
            host.tell((phase = phase, done = done, of = of))
            last[] = time_ns()
        end
    end
end

end # module
