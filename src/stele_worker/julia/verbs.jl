# What a Julia worker can be asked. Fields and results of each verb stand in docs/protocol.md.

include("randomstate.jl")
include("tasks.jl")
include("process.jl")
include("measurement.jl")
include("agreement.jl")

ThisProcess.die_with_parent()

const PROTOCOL = 3
const configured = Dict{String,Module}()  # the framework in force
const recipes = Dict{String,Module}()

"""Carry out a request, a Dict of verb and fields. host is told of progress, and asked to go on."""
function carry_out(request, host)
    verb = pop!(request, "verb", nothing)
    if !haskey(VERBS, verb)
        throw(ArgumentError("unknown verb $(repr(verb)); this worker knows " * join(sort(collect(keys(VERBS))), ", ")))
    end
    # what a request includes is younger than the loop that reads them
    return Base.invokelatest(VERBS[verb], host; (Symbol(key) => value for (key, value) in request)...)
end

function hello(host)
    return (protocol = PROTOCOL, python = nothing, numpy = nothing, julia = string(VERSION), pid = getpid())
end

function configure(host; framework, settings)
    ThisProcess.keep_to(settings["threads"])
    start = time_ns()
    name = string(framework)
    if !haskey(configured, name)
        configured[name] = include(joinpath(@__DIR__, "..", "frameworks", name * ".jl"))
    end
    import_seconds = (time_ns() - start) / 1e9
    return Base.invokelatest(set, configured[name], settings, import_seconds)
end

function set(framework, settings, import_seconds)
    framework.configure(settings)
    flags = merge(framework.flags(), (processors = ThisProcess.processors(),))
    return (import_seconds = import_seconds, versions = framework.versions(), flags = flags)
end

train(host; fields...) = measured(Measurement.train, host; fields...)
infer(host; fields...) = measured(Measurement.infer, host; fields...)

function measured(measure, host; task, scale, seed, form = nothing, data, weights, warmup, turn = nothing)
    framework, recipe = subject(task)
    task = Tasks.make(task, scale, seed, form)
    return Base.invokelatest(measure, framework, recipe, task, host; data, weights, warmup, turn)
end

function parity(host; task, phase, seed, form = nothing)
    framework, recipe = subject(task)
    return Base.invokelatest(Agreement.check, framework, recipe, Tasks.make(task, "paper", seed, form), phase)
end

"""The framework in force and its recipe of a Task."""
function subject(task)
    isempty(configured) && error("no framework yet: send 'configure' first")
    name, framework = first(configured)
    if !haskey(recipes, task)
        recipes[task] = include(joinpath(@__DIR__, "..", "recipes", task, name * ".jl"))
    end
    return framework, recipes[task]
end

const VERBS = Dict(
    "hello" => hello, "configure" => configure, "train" => train, "infer" => infer, "parity" => parity
)
