# The serve loop in Julia: read a request, carry it out, answer. Only this file catches every error.
# claim.sh starts it; docs/protocol.md describes the protocol. It has never been run: Julia was not available.

Base.exit_on_sigint(false)  # an interrupt raises an exception, which is answered

"""Carry out one request and send its progress, then its result or its error."""
function answer(line, requests, answers)
    number = nothing
    function send(kind, value)
        println(answers, JSON.json(to_json(Dict("id" => number, kind => value))))
        flush(answers)
    end
    """Wait until the host says to continue."""
    function pause(done)
        send("pause", (done = done,))
        eof(requests) && exit(1)  # the host closed standard input
        reply = readline(requests)
        get(decode(reply), "go", false) === true || error("expected 'go' during a pause, got " * first(reply, 80))
    end
    host = (report = fields -> send("progress", fields), pause = pause)
    try
        request = decode(line)
        number = pop!(request, "id", nothing)
        send("result", carry_out(request, host))
    catch error
        send("error", describe_error(error, catch_backtrace()))
    end
end

function decode(line)
    request = JSON.parse(line)
    request isa AbstractDict || throw(ArgumentError("not a JSON object: " * first(line, 80)))
    return Dict{String,Any}(request)
end

function describe_error(error, trace)
    message = sprint(showerror, error)
    return Dict(
        "type" => string(nameof(typeof(error))),
        "message" => isempty(message) ? string(nameof(typeof(error))) : message,
        "traceback" => sprint(showerror, error, trace),
    )
end

"""Return containers and numbers as JSON types; numbers that are not finite become nothing, JSON's null."""
to_json(value) = value
to_json(value::AbstractFloat) = isfinite(value) ? value : nothing
to_json(value::Symbol) = string(value)
to_json(value::AbstractDict) = Dict{String,Any}(string(key) => to_json(item) for (key, item) in value)
to_json(value::NamedTuple) = Dict{String,Any}(string(key) => to_json(item) for (key, item) in pairs(value))
to_json(value::Union{Tuple,AbstractVector}) = Any[to_json(item) for item in value]

"""Return the answer when packages are missing. It is built without JSON, which may be one of them."""
function missing_packages_error(line, error)
    id = match(r"\"id\": *(\d+)", line)
    number = id === nothing ? "null" : id[1]
    packages = join("\\\"" .* ["Knet", "JSON", "NPZ"] .* "\\\"", ", ")
    advice = "A Julia package is missing or broken: julia -e 'using Pkg; Pkg.add([$packages])'. "
    detail = replace(sprint(showerror, error), r"[^ !#-\[\]-~]" => " ")
    return "{\"id\":$number,\"error\":{\"type\":\"LoadError\",\"message\":\"$advice$detail\",\"traceback\":\"\"}}"
end

function main(requests, answers)
    for line in eachline(requests)
        try
            @eval using JSON
            isdefined(Main, :carry_out) || include(joinpath(@__DIR__, "verbs.jl"))
        catch error
            println(answers, missing_packages_error(line, error))
            flush(answers)
            continue
        end
        Base.invokelatest(answer, line, requests, answers)  # invokelatest: the packages are newer than this loop
    end
end

main(open("/dev/fd/3"), open("/dev/fd/4", "a"))
