# GRU on IMDB in Knet: Knet's RNN, with cuDNN's form of the GRU, unrolled over time on a CPU.
module GRU

using Knet

const LAYOUT = nothing

struct Net
    embedding
    gru
    weight
    bias
end

function (net::Net)(x)
    x = net.embedding[:, permutedims(x)]  # (125, batch, 150)
    x = net.gru(x)  # (100, batch, 150)
    return net.weight * x[:, :, size(x, 3)] .+ net.bias  # (2, batch)
end

function network(task)
    gru = RNN(
        task.embedding, task.hidden;
        rnnType = :gru, numLayers = 1, bidirectional = false, skipInput = false, dropout = 0, h = nothing,
    )
    embedding = Param(zeros(Float32, task.embedding, task.vocabulary))
    return Net(embedding, gru, Param(zeros(Float32, 2, task.hidden)), Param(zeros(Float32, 2)))
end

# Knet keeps a GRU's parameters in one array, in this order, each with gates r, z, n
const PARTS = ("gru.input_weight", "gru.hidden_weight", "gru.input_bias", "gru.hidden_bias")

parameters(net) = (net.embedding, net.gru.w, net.weight, net.bias)

function load(net, weights)
    value(net.embedding) .= weights["embedding.weight"]
    value(net.gru.w)[:] = vcat((vec(weights[name]) for name in PARTS)...)
    value(net.weight) .= permutedims(weights["dense.weight"])  # (out, in)
    value(net.bias) .= weights["dense.bias"]
    return net
end

const SIZES = (300 * 125, 300 * 100, 300, 300)

"""Return parameters or gradients under the Task's names; those of the GRU come from one array."""
function to_task_names(values)
    embedding, gru, weight, bias = values
    ends = cumsum(collect(SIZES))
    parts = [name => vec(gru)[stop-size+1:stop] for (name, size, stop) in zip(PARTS, SIZES, ends)]
    others = ["embedding.weight" => embedding, "dense.weight" => weight, "dense.bias" => bias]
    return [others; parts]
end

cross_entropy(net, x, y) = nll(net(x), y; dims = 1, average = true)

function gradients(net, task)
    function run(x, y)
        tape = @diff cross_entropy(net, x, y)
        return value(tape), to_task_names([AutoGrad.full(grad(tape, parameter)) for parameter in parameters(net)])
    end
    return run
end

function training_step(net, task)
    for parameter in parameters(net)
        parameter.opt = Adam(
            lr = task.learning_rate, beta1 = task.beta1, beta2 = task.beta2, eps = task.epsilon, gclip = 0
        )
    end
    function step(x, y)
        tape = @diff cross_entropy(net, x, y)
        for parameter in parameters(net)
            update!(parameter, grad(tape, parameter))
        end
        return value(tape)
    end
    return step
end

inference_step(net, task) = net  # without a tape, Knet keeps nothing for gradients

stored(net) = to_task_names([value(parameter) for parameter in parameters(net)])

function neutral(name, array)
    name == "dense.weight" && return permutedims(array)
    return endswith(name, "_weight") ? reshape(array, :, 300) : array
end

end # module
