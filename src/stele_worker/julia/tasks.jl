"""The Tasks: constants are read from the Python files of the Tasks; the rest repeats in Julia what those do in NumPy.

Arrays have NumPy's memory order, so their dimensions are NumPy's reversed: images (channel, column, row, n),
convolutions (width, height, in, out), dense (in, out). Rows of a data set are counted from one.
"""
module Tasks

import JSON, NPZ, SHA
using ..RandomStates

"""Return a Task as a NamedTuple, (name = "cnn", data = "cifar10", ...), read from stele_suite/tasks/<name>.py."""
function make(name, scale, seed, form)
    text = read(joinpath(@__DIR__, "..", "..", "stele_suite", "tasks", name * ".py"), String)
    fields = eachmatch(r"^    (\w+): (?:str|int|float|tuple) = (.+?)(?:  #.*)?$"m, text)
    constants = [(Symbol(field[1]), parse_literal(field[2])) for field in fields]
    sizes = match(Regex("^    \"$scale\": (\\{.*?\\}),\$", "m"), text)
    sizes === nothing && throw(ArgumentError("no scale '$scale' of '$name'"))
    changes = Dict{String,Any}(JSON.parse(sizes[1]))
    changes["seed"] = seed
    form === nothing || (changes["form"] = form)
    return NamedTuple{Tuple(first.(constants))}(Tuple(get(changes, string(key), value) for (key, value) in constants))
end

"""Return the value of a Python literal: None, a string, a number, or a tuple of numbers."""
function parse_literal(text)
    text == "None" && return nothing
    startswith(text, '"') && return String(strip(text, '"'))
    if startswith(text, '(')
        parts = split(strip(text, ['(', ')']), ", ", keepempty = false)
        return Tuple(parse(Float64, part) for part in parts)
    end
    integer = tryparse(Int, text)
    return integer === nothing ? parse(Float64, text) : integer
end

without_dropout(task) = merge(task, (dropout = map(zero, task.dropout),))

"""Return the rows of the training set for each step of an epoch; epochs are counted from zero."""
function batch_order(task, epoch)
    order = permutation(RandomState([task.seed, epoch]), task.train) .+ 1
    return collect(Iterators.partition(order[1:task.train÷task.batch*task.batch], task.batch))
end

"""Return the rows of the test set in order, for each whole batch."""
whole_batches(task) = collect(Iterators.partition(1:task.test÷task.batch*task.batch, task.batch))

"""Return a hash of the bits of named arrays."""
function digest(arrays)
    context = SHA.SHA256_CTX()
    for (name, array) in sort(collect(arrays); by = first)
        SHA.update!(context, Vector{UInt8}(name))
        SHA.update!(context, collect(reinterpret(UInt8, vec(Float32.(array)))))
    end
    return bytes2hex(SHA.digest!(context))
end

"""Return (inputs, labels) that the Task uses of a part, "train" or "test", of its data set."""
function load_samples(task, data, part)
    size = getfield(task, Symbol(part))
    data === nothing && return example(task, size)
    x, y = NPZ.npzread(data[part*"_x"]), NPZ.npzread(data[part*"_y"])
    rows = permutation(RandomState(0), length(y))[1:size] .+ 1
    x = reverse_dimensions(x[rows, ntuple(_ -> Colon(), ndims(x) - 1)...])
    return task.name == "cnn" ? x ./ 255.0f0 : x, Int.(y[rows])
end

"""Return images in the layout of a recipe; the layout names the order in memory."""
to_layout(x, layout) = layout == "NCHW" ? permutedims(x, (2, 3, 1, 4)) : x

reverse_dimensions(array) = permutedims(array, ndims(array):-1:1)

"""Return a batch for comparing frameworks: (inputs, labels)."""
function example(task, n)
    random = RandomState(task.seed)
    classes = Dict("cnn" => 10, "gru" => 2, "resnet50" => 1000)[task.name]
    if task.name == "gru"
        x = randint(random, 30000, (n, 150))
    else
        side = task.name == "cnn" ? 32 : 224
        x = Float32.(uniform(random, 0.0, 1.0, (n, side, side, 3)))
    end
    return x, randint(random, classes, (n,))
end

"""Return the weights in the file `path`, or the Task's seeded weights, in order, if it is nothing."""
function initial_weights(task, path)
    path === nothing && return seeded_weights(task)
    return [name => reverse_dimensions(array) for (name, array) in NPZ.npzread(path)]
end

seeded_weights(task) = SEEDED[task.name](RandomState(task.seed))

function cnn(random)
    shapes = [
        "conv1" => (50, 3, 3, 3), "conv2" => (50, 50, 3, 3), "conv3" => (100, 50, 3, 3), "conv4" => (100, 100, 3, 3),
        "dense1" => (512, 6400), "dense2" => (10, 512),
    ]
    weights = Pair{String,Array{Float32}}[]
    for (name, shape) in shapes
        push!(weights, name * ".weight" => glorot_uniform(random, shape))
        push!(weights, name * ".bias" => zeros(Float32, shape[1]))
    end
    return weights
end

function gru(random)
    return Pair{String,Array{Float32}}[
        "embedding.weight" => uniform_weights(random, 0.05, (30000, 125)),
        "gru.input_weight" => uniform_weights(random, 0.1, (300, 125)),
        "gru.hidden_weight" => uniform_weights(random, 0.1, (300, 100)),
        "gru.input_bias" => uniform_weights(random, 0.1, (300,)),
        "gru.hidden_bias" => uniform_weights(random, 0.1, (300,)),
        "dense.weight" => glorot_uniform(random, (2, 100)),
        "dense.bias" => zeros(Float32, 2),
    ]
end

function resnet50(random)
    weights = Pair{String,Array{Float32}}[]
    for (convolution, norm, shape) in convolutions()
        push!(weights, convolution * ".weight" => he_normal(random, shape))
        centre = endswith(norm, "bn3") ? 0.2f0 : 1.0f0
        push!(weights, norm * ".weight" => centre .* (1.0f0 .+ uniform_weights(random, 0.1, shape[1:1])))
        push!(weights, norm * ".bias" => uniform_weights(random, 0.1, shape[1:1]))
        push!(weights, norm * ".running_mean" => uniform_weights(random, 0.1, shape[1:1]))
        push!(weights, norm * ".running_var" => 1.0f0 .+ uniform_weights(random, 0.1, shape[1:1]))
    end
    push!(weights, "fc.weight" => uniform_weights(random, power(2048.0, -0.5), (1000, 2048)))
    push!(weights, "fc.bias" => zeros(Float32, 1000))
    return weights
end

const SEEDED = Dict("cnn" => cnn, "gru" => gru, "resnet50" => resnet50)

uniform_weights(random, limit, shape) = Float32.(uniform(random, -limit, limit, shape))

function glorot_uniform(random, shape)
    fans = (shape[1] + shape[2]) * prod(shape[3:end])
    return uniform_weights(random, power(6.0 / fans, 0.5), shape)
end

function he_normal(random, shape)
    return Float32.(standard_normal(random, shape) .* power(2.0 / (shape[1] * prod(shape[3:end])), 0.5))
end

"""Return (name, inputs, width, stride) of the sixteen bottleneck blocks of ResNet-50, in order."""
function blocks()
    result, inputs = Tuple{String,Int,Int,Int}[], 64
    for (stage, (count, width, stride)) in enumerate(((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)))
        for block in 0:count-1
            push!(result, ("layer$stage.$block", inputs, width, block == 0 ? stride : 1))
            inputs = 4 * width
        end
    end
    return result
end

"""Return (name, name of its batch normalisation, NumPy shape) of the 53 convolutions of ResNet-50, in order."""
function convolutions()
    result = Tuple{String,String,NTuple{4,Int}}[("conv1", "bn1", (64, 3, 7, 7))]
    for (name, inputs, width, _) in blocks()
        push!(result, (name * ".conv1", name * ".bn1", (width, inputs, 1, 1)))
        push!(result, (name * ".conv2", name * ".bn2", (width, width, 3, 3)))
        push!(result, (name * ".conv3", name * ".bn3", (4 * width, width, 1, 1)))
        if endswith(name, ".0")
            push!(result, (name * ".downsample.0", name * ".downsample.1", (4 * width, inputs, 1, 1)))
        end
    end
    return result
end

"""Return the hash of constants, weights and batch. It must equal the hash of stele_worker/agreement.py."""
function fingerprint(task, weights, x, y)
    sizes = (:train, :test, :epochs, :batch, :dtype)
    constants = ["('$key', $(python_repr(value)))" for (key, value) in pairs(task) if !(key in sizes)]
    context = SHA.SHA256_CTX()
    SHA.update!(context, Vector{UInt8}("[" * join(constants, ", ") * "]"))
    for array in [last.(weights); [x isa Array{Float32} ? x : Int32.(x), Int32.(y)]]
        SHA.update!(context, collect(reinterpret(UInt8, vec(array))))
    end
    return bytes2hex(SHA.digest!(context))[1:16]
end

"""Return a value as Python's repr writes it."""
python_repr(value::Nothing) = "None"
python_repr(value::AbstractString) = "'$value'"
python_repr(value::Integer) = string(value)
python_repr(value::Tuple) = "(" * join(map(python_repr, value), ", ") * ")"

function python_repr(value::AbstractFloat)
    text = string(value)
    occursin('e', text) || return text
    digits, exponent = split(text, 'e')
    sign, size = startswith(exponent, '-') ? ("-", exponent[2:end]) : ("+", exponent)
    return replace(digits, r"\.0$" => "") * "e" * sign * lpad(size, 2, '0')
end

end # module
