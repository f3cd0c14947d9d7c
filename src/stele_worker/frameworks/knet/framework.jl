# Knet 1 on the CPU: NNlib computes convolutions, Julia's BLAS library matrix products.
module KnetFramework

import Knet, Random, TOML
using LinearAlgebra: BLAS

"""See stele_worker/frameworks/base.py. docs/protocol.md describes the settings."""
function configure(settings)
    for (name, supported) in ("device" => "cpu", "precision" => "fp32")
        settings[name] == supported ||
            error("Knet is supported with $name '$supported' only, not '$(settings[name])': use $name '$supported'")
    end
    Knet.array_type[] = Array{Float32}  # with a GPU, Knet's default is an array on the GPU
    BLAS.set_num_threads(settings["threads"])
    Random.seed!(settings["seed"])
end

function versions()
    knet = TOML.parsefile(Knet.dir("Project.toml"))["version"]
    return (knet = knet, julia = string(VERSION))
end

function flags()
    return (
        device = "cpu",
        threads = BLAS.get_num_threads(),
        julia_threads = Threads.nthreads(),
        array_type = string(Knet.atype()),
    )
end

"""Copy an array to the device; classes and tokens are counted from one in Julia."""
put(array::AbstractArray{<:AbstractFloat}) = Knet.atype(array)
put(array::AbstractArray{<:Integer}) = Int.(array) .+ 1

take(data, rows) = copy(selectdim(data, ndims(data), rows))
wait(value) = nothing  # on a CPU a call returns after its computation
fetch(value) = value isa Number ? value : Array(value)
peak_memory() = nothing

end # module
