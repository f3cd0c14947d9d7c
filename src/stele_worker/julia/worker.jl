# The serve loop in Julia: read a request, do it, answer. The only place that catches everything.
# Started by claim.sh; the protocol is described in docs/protocol.md. Never run yet: no machine of ours had a Julia.

Base.exit_on_sigint(false)  # an interrupt is an exception, and so an answer

"""The answer to one request: its progress, then its result or its error."""
function answer(line, requests, answers)
    number = nothing
    function send(kind, value)
        println(answers, JSON.json(plain(Dict("id" => number, kind => value))))
        flush(answers)
    end
    """Wait, while another worker has its turn, until the host says to go on."""
    function pause(done)
        send("pause", (done = done,))
        eof(requests) && exit(1)  # the host is gone
        said = readline(requests)
        get(decode(said), "go", false) === true || error("in a pause only 'go' can be asked for, not " * first(said, 80))
    end
    host = (tell = fields -> send("progress", fields), pause = pause)
    try
        request = decode(line)
        number = pop!(request, "id", nothing)
        send("result", carry_out(request, host))
    catch error
        send("error", described(error, catch_backtrace()))
    end
end

function decode(line)
    request = JSON.parse(line)
    request isa AbstractDict || throw(ArgumentError("not a JSON object: " * first(line, 80)))
    return Dict{String,Any}(request)
end

function described(error, trace)
    what = sprint(showerror, error)
    return Dict(
        "type" => string(nameof(typeof(error))),
        "message" => isempty(what) ? string(nameof(typeof(error))) : what,
        "traceback" => sprint(showerror, error, trace),
    )
end

"""Containers and numbers as JSON knows them; a number that is not finite becomes nothing, which JSON writes as null."""
plain(value) = value
plain(value::AbstractFloat) = isfinite(value) ? value : nothing
plain(value::Symbol) = string(value)
plain(value::AbstractDict) = Dict{String,Any}(string(key) => plain(item) for (key, item) in value)
plain(value::NamedTuple) = Dict{String,Any}(string(key) => plain(item) for (key, item) in pairs(value))
plain(value::Union{Tuple,AbstractVector}) = Any[plain(item) for item in value]

"""The answer while the packages are missing, JSON perhaps among them, written by hand."""
function refusal(line, error)
    found = match(r"\"id\": *(\d+)", line)
    number = found === nothing ? "null" : found[1]
    packages = join("\\\"" .* ["Knet", "JSON", "NPZ"] .* "\\\"", ", ")
    advice = "A Julia package is missing or broken: julia -e 'using Pkg; Pkg.add([$packages])'. "
    what = replace(sprint(showerror, error), r"[^ !#-\[\]-~]" => " ")
    return "{\"id\":$number,\"error\":{\"type\":\"LoadError\",\"message\":\"$advice$what\",\"traceback\":\"\"}}"
end

function main(requests, answers)
    for line in eachline(requests)
        try
            @eval using JSON
            isdefined(Main, :carry_out) || include(joinpath(@__DIR__, "verbs.jl"))
        catch error
            println(answers, refusal(line, error))
            flush(answers)
            continue
        end
        Base.invokelatest(answer, line, requests, answers)  # whose packages are younger than this loop
    end
end

main(open("/dev/fd/3"), open("/dev/fd/4", "a"))
