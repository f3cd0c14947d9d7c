# The verbs of a Julia worker. docs/protocol.md lists the fields and the result of each verb.

include("randomstate.jl")
include("tasks.jl")
include("process.jl")
include("measurement.jl")
include("agreement.jl")

ThisProcess.die_with_parent()

const PROTOCOL = 1
const configuration = Dict{String,Module}()  # name => module of the configured framework
const recipes = Dict{String,Module}()

"""Carry out a request, a Dict of verb and fields, and return its result. host receives progress and pauses."""
function carry_out(request, host)
    verb = pop!(request, "verb", nothing)
    if !haskey(VERBS, verb)
        throw(ArgumentError("unknown verb $(repr(verb)); this worker knows " * join(sort(collect(keys(VERBS))), ", ")))
    end
    # invokelatest: a request may include() functions that are newer than the serve loop
    return Base.invokelatest(VERBS[verb], host; (Symbol(key) => value for (key, value) in request)...)
end

function hello(host)
    return (protocol = PROTOCOL, python = nothing, numpy = nothing, julia = string(VERSION), pid = getpid())
end

function configure(host; framework, settings)
    ThisProcess.limit_processors(settings["threads"])
    start = time_ns()
    name = string(framework)
    if !haskey(configuration, name)
        configuration[name] = include(joinpath(@__DIR__, "..", "frameworks", name, "framework.jl"))
    end
    import_seconds = (time_ns() - start) / 1e9
    return Base.invokelatest(apply_settings, configuration[name], settings, import_seconds)
end

function apply_settings(framework, settings, import_seconds)
    framework.configure(settings)
    flags = merge(framework.flags(), (processors = ThisProcess.processors(),))
    return (import_seconds = import_seconds, versions = framework.versions(), flags = flags)
end

train(host; fields...) = run_measurement(Measurement.train, host; fields...)
infer(host; fields...) = run_measurement(Measurement.infer, host; fields...)

function run_measurement(measure, host; task, scale, seed, form = nothing, data, weights, warmup, turn = nothing, steps = nothing)
    framework, recipe = framework_and_recipe(task)
    task = Tasks.make(task, scale, seed, form)
    return Base.invokelatest(measure, framework, recipe, task, host; data, weights, warmup, turn)
end

function parity(host; task, phase, seed, form = nothing)
    framework, recipe = framework_and_recipe(task)
    return Base.invokelatest(Agreement.check, framework, recipe, Tasks.make(task, "paper", seed, form), phase)
end

"""Return the configured framework and its recipe of a Task."""
function framework_and_recipe(task)
    isempty(configuration) && error("no framework is configured: send 'configure' first")
    name, framework = first(configuration)
    if !haskey(recipes, task)
        recipes[task] = include(joinpath(@__DIR__, "..", "..", "stele_suite", "recipes", task, name * ".jl"))
    end
    return framework, recipes[task]
end

const VERBS = Dict(
    "hello" => hello, "configure" => configure, "train" => train, "infer" => infer, "parity" => parity
)
