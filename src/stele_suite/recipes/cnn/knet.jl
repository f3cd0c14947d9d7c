# CNN on CIFAR-10 in Knet: callable structs, arrays (width, height, channel, batch).
module CNN

using Knet

const LAYOUT = "NCHW"  # the order in memory: the first dimension here is NumPy's last

struct Convolution
    weight
    bias
end

function Convolution(inputs::Integer, outputs::Integer)
    return Convolution(Param(zeros(Float32, 3, 3, inputs, outputs)), Param(zeros(Float32, 1, 1, outputs, 1)))
end

# mode 1 is the cross-correlation that other frameworks call convolution
(layer::Convolution)(x) = conv4(layer.weight, x; padding = 1, stride = 1, dilation = 1, mode = 1) .+ layer.bias

struct Dense
    weight
    bias
end

Dense(inputs::Integer, outputs::Integer) = Dense(Param(zeros(Float32, outputs, inputs)), Param(zeros(Float32, outputs)))
(layer::Dense)(x) = layer.weight * x .+ layer.bias

struct Net
    conv1
    conv2
    conv3
    conv4
    dense1
    dense2
    rates
end

halve(x) = pool(x; window = 2, padding = 0, stride = 2, mode = 0)

function (net::Net)(x)
    # (32, 32, 3, batch)
    x = relu.(net.conv1(x))  # (32, 32, 50, batch)
    x = relu.(halve(net.conv2(x)))  # (16, 16, 50, batch)
    x = dropout(x, net.rates[1])  # in training only: Knet checks for a tape
    x = relu.(net.conv3(x))  # (16, 16, 100, batch)
    x = relu.(halve(net.conv4(x)))  # (8, 8, 100, batch)
    x = dropout(x, net.rates[2])
    x = mat(x)  # (6400, batch): channel, row, column, the Task's order
    x = dropout(relu.(net.dense1(x)), net.rates[3])
    return net.dense2(x)  # (10, batch)
end

function network(task)
    return Net(
        Convolution(3, 50), Convolution(50, 50), Convolution(50, 100), Convolution(100, 100),
        Dense(6400, 512), Dense(512, 10), task.dropout,
    )
end

const NAMES = ("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")

"""Return name => Param for each parameter."""
function parameters(net)
    layers = [name => getfield(net, Symbol(name)) for name in NAMES]
    return vcat(([name * ".weight" => layer.weight, name * ".bias" => layer.bias] for (name, layer) in layers)...)
end

function load(net, weights)
    for (name, parameter) in parameters(net)
        array = weights[name]
        if startswith(name, "dense") && ndims(array) == 2
            array = permutedims(array)  # (out, in)
        end
        value(parameter) .= reshape(array, size(value(parameter)))
    end
    return net
end

cross_entropy(net, x, y) = nll(net(x), y; dims = 1, average = true)

function gradients(net, task)
    function run(x, y)
        tape = @diff cross_entropy(net, x, y)
        return value(tape), [name => AutoGrad.full(grad(tape, parameter)) for (name, parameter) in parameters(net)]
    end
    return run
end

function training_step(net, task)
    weights = last.(parameters(net))
    for weight in weights
        weight.opt = Momentum(lr = task.learning_rate, gamma = task.momentum, gclip = 0)
    end
    function step(x, y)
        tape = @diff cross_entropy(net, x, y)
        for weight in weights
            update!(weight, grad(tape, weight))
        end
        return value(tape)
    end
    return step
end

inference_step(net, task) = net  # without a tape, Knet keeps nothing for gradients

stored(net) = [name => value(parameter) for (name, parameter) in parameters(net)]

function neutral(name, array)
    endswith(name, ".bias") && return vec(array)
    return startswith(name, "dense") ? permutedims(array) : array
end

end # module
