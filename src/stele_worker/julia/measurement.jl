"""Measure one launch of one recipe. docs/protocol.md describes an outcome."""
module Measurement

using Statistics: median
using ..ThisProcess, ..Tasks

const NOT_EVALUATED = (accuracy = nothing, evaluated = 0)
const PROGRESS_SECONDS = 1.0  # minimum time between two progress messages, so that they do not disturb the steps

"""Run step on each of batches; call each(duration in seconds, result) after each step.

The clock starts when a batch is ready on the device and stops when the step's result has been computed. Young garbage
is collected between two steps; a step that fills the memory also triggers a collection.
"""
function time_steps(each, step, batches, wait)
    for batch in batches
        GC.gc(false)
        wait(batch)
        start = time_ns()
        result = step(batch...)
        wait(result)
        each((time_ns() - start) / 1e9, result)
    end
end

"""Return the number of steps before the first steady step, or nothing if the step times never stop trending.

See stele_worker/clock.py.
"""
function find_steady_step(seconds, window, tolerance)
    for start in 1:length(seconds)-2window
        earlier = median(seconds[start+1:start+window])
        later = median(seconds[start+window+1:start+2window])
        abs(later - earlier) < tolerance * earlier && return start
    end
    return nothing
end

"""Train for the Task's epochs, time every step, then evaluate. Return an outcome.

With `steps`, stop after so many and do not evaluate.
"""
function train(framework, recipe, task, host; data, weights, warmup, turn, steps)
    x, y = map(framework.put, load_samples(recipe, task, data, "train"))
    ThisProcess.reset_peak_memory()
    net = recipe.load(recipe.network(task), Dict(Tasks.initial_weights(task, weights)))
    step = recipe.training_step(net, task)
    rows = [rows for epoch in 0:task.epochs-1 for rows in Tasks.batch_order(task, epoch)]
    rows = first(rows, something(steps, length(rows)))
    report = progress_reporter(host, "train", length(rows))
    seconds, losses = Float64[], Any[]
    await_turn = take_turns(turn, host)
    batches = ((await_turn(done); (framework.take(x, row), framework.take(y, row))) for (done, row) in enumerate(rows))
    GC.gc()
    time_steps(step, batches, framework.wait) do duration, loss
        push!(seconds, duration)
        push!(losses, loss)
        report(length(seconds))
    end
    steady = find_steady_step(seconds, warmup["window"], warmup["tolerance"])
    unsteady = min(warmup["most"], length(seconds) ÷ 2)
    outcome = summarise(framework, task, seconds, something(steady, unsteady), steady !== nothing)
    losses = [Float64(framework.fetch(loss)) for loss in losses]
    evaluation = steps === nothing ? evaluate(framework, recipe, net, task, data, host) : NOT_EVALUATED
    return merge(outcome, (learning = merge((losses = losses,), evaluation),))
end

"""Warm up until the step times stop trending, then time the Task's test batches. Return an outcome.

With `steps`, stop after so many in all, the warm-up included.
"""
function infer(framework, recipe, task, host; data, weights, warmup, turn, steps)
    x = framework.put(first(load_samples(recipe, task, data, "test")))
    ThisProcess.reset_peak_memory()
    net = recipe.load(recipe.network(task), Dict(Tasks.initial_weights(task, weights)))
    step = recipe.inference_step(net, task)
    test_rows = Tasks.whole_batches(task)
    report = progress_reporter(host, "infer", length(test_rows))
    seconds = Float64[]
    steady_step(seconds) = find_steady_step(seconds, warmup["window"], warmup["tolerance"])
    GC.gc()
    await_turn = take_turns(turn, host)
    most = steps === nothing ? warmup["most"] : min(warmup["most"], max(steps ÷ 2, 1))
    keep(duration, _) = (push!(seconds, duration); report(0))
    while steady_step(seconds) === nothing && length(seconds) < most
        row = test_rows[mod1(length(seconds) + 1, length(test_rows))]
        await_turn(length(seconds) + 1)
        time_steps(keep, step, ((framework.take(x, row),),), framework.wait)
    end
    steady, unsteady = steady_step(seconds) !== nothing, length(seconds)
    counted = steps === nothing ? length(test_rows) : max(steps - unsteady, 0)
    rows = (test_rows[mod1(done, length(test_rows))] for done in 1:counted)
    batches = ((await_turn(unsteady + done); (framework.take(x, row),)) for (done, row) in enumerate(rows))
    time_steps(step, batches, framework.wait) do duration, _
        push!(seconds, duration)
        report(length(seconds) - unsteady)
    end
    return summarise(framework, task, seconds, unsteady, steady)
end

"""Return the inputs, in the recipe's layout, and the labels."""
function load_samples(recipe, task, data, part)
    x, y = Tasks.load_samples(task, data, part)
    return Tasks.to_layout(x, recipe.LAYOUT), y
end

"""Return the part of an outcome that training and inference share. Call it before anything else uses memory."""
function summarise(framework, task, seconds, warmup, steady)
    return (
        steps = (seconds = seconds, warmup = warmup, steady = steady, batch = task.batch),
        memory = (host = ThisProcess.peak_memory(), device = framework.peak_memory()),
    )
end

"""Return the accuracy on the Task's test samples, and their number."""
function evaluate(framework, recipe, net, task, data, host)
    task.data === nothing && return NOT_EVALUATED
    x, y = load_samples(recipe, task, data, "test")
    x, step, correct, rows = framework.put(x), recipe.inference_step(net, task), 0, Tasks.whole_batches(task)
    report = progress_reporter(host, "evaluate", length(rows))
    for (done, row) in enumerate(rows)
        logits = framework.fetch(step(framework.take(x, row)))  # (classes, batch)
        correct += count(argmax(logits[:, i]) == y[row[i]] + 1 for i in eachindex(row))
        report(done)
    end
    evaluated = length(rows) * task.batch
    return (accuracy = correct / evaluated, evaluated = evaluated)
end

"""Return await_turn(step), which pauses before the first step and after every `turn` steps."""
take_turns(turn, host) = step -> turn !== nothing && (step - 1) % turn == 0 && host.pause(step - 1)

"""Return report(done), which sends progress to the host at most once every PROGRESS_SECONDS."""
function progress_reporter(host, phase, of)
    last = Ref(time_ns())
    return function (done)
        if (time_ns() - last[]) / 1e9 >= PROGRESS_SECONDS
            host.report((phase = phase, done = done, of = of))
            last[] = time_ns()
        end
    end
end

end # module
