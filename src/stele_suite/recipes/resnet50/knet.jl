# ResNet-50 v1.5 in Knet: functions of named arrays, (width, height, channel, batch).
module ResNet50

using Knet
using Statistics: mean
using ..Tasks: blocks, convolutions

const LAYOUT = "NCHW"  # the order in memory: the first dimension here is NumPy's last

network(task) = Dict{String,Any}()  # arrays by name: features computes the layers from them

function load(net, weights)
    for (convolution, norm, _) in convolutions()
        net[convolution] = Knet.atype(weights[convolution*".weight"])  # (width, height, in, out)
        average, variance = (reshape(weights[norm*part], 1, 1, :, 1) for part in (".running_mean", ".running_var"))
        moments = bnmoments(mean = Knet.atype(average), var = Knet.atype(variance))
        scale_and_shift = Knet.atype(vcat(weights[norm*".weight"], weights[norm*".bias"]))
        net[norm] = (moments, scale_and_shift)
    end
    return net
end

function unit(net, task, x, convolution, norm, stride)
    kernel = net[convolution]
    # mode 1 is the cross-correlation that other frameworks call convolution
    x = conv4(kernel, x; padding = size(kernel, 1) ÷ 2, stride = stride, dilation = 1, mode = 1)
    return batchnorm(x, net[norm]...; training = false, eps = task.epsilon)
end

function bottleneck(net, task, x, name, stride)
    shortcut = x
    if haskey(net, name * ".downsample.0")
        shortcut = unit(net, task, x, name * ".downsample.0", name * ".downsample.1", stride)
    end
    x = relu.(unit(net, task, x, name * ".conv1", name * ".bn1", 1))
    x = relu.(unit(net, task, x, name * ".conv2", name * ".bn2", stride))
    return relu.(unit(net, task, x, name * ".conv3", name * ".bn3", 1) .+ shortcut)
end

function features(net, task, x)
    # (224, 224, 3, batch)
    x = relu.(unit(net, task, x, "conv1", "bn1", 2))  # (112, 112, 64, batch)
    x = pool(x; window = 3, padding = 1, stride = 2, mode = 0)  # (56, 56, 64, batch)
    for (name, _, _, stride) in blocks()
        x = bottleneck(net, task, x, name, stride)  # finally (7, 7, 2048, batch)
    end
    return reshape(mean(x; dims = (1, 2)), size(x, 3), size(x, 4))  # (2048, batch)
end

inference_step(net, task) = x -> features(net, task, x)

function stored(net)
    arrays = Pair{String,Any}[]
    for (convolution, norm, _) in convolutions()
        moments, scale_and_shift = net[norm]
        channels = length(scale_and_shift) ÷ 2
        push!(arrays, convolution * ".weight" => net[convolution])
        push!(arrays, norm * ".weight" => scale_and_shift[1:channels])
        push!(arrays, norm * ".bias" => scale_and_shift[channels+1:end])
        push!(arrays, norm * ".running_mean" => vec(moments.mean), norm * ".running_var" => vec(moments.var))
    end
    return arrays
end

neutral(name, array) = array

end # module
