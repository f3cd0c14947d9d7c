# Knet 1 around any Task, on the CPU: convolutions by NNlib, products by Julia's BLAS library.
module KnetFramework

import Knet, Random, TOML
using LinearAlgebra: BLAS

"""See stele_worker/frameworks/__init__.py; settings as in docs/protocol.md."""
function configure(settings)
    for (name, known) in ("device" => "cpu", "precision" => "fp32")
        settings[name] == known || error("This worker runs Knet in $name '$known' only, not '$(settings[name])'")
    end
    Knet.array_type[] = Array{Float32}  # where there is a GPU, Knet has set it to that one's
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

"""An array onto the device; classes and words are counted from one here."""
put(array::AbstractArray{<:AbstractFloat}) = Knet.atype(array)
put(array::AbstractArray{<:Integer}) = Int.(array) .+ 1

take(data, rows) = copy(selectdim(data, ndims(data), rows))
wait(value) = nothing  # on a CPU a call returns when it has been computed
fetch(value) = value isa Number ? value : Array(value)
peak_memory() = nothing

end # module
