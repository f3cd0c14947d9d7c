"""The stream of numpy.random.RandomState, bit for bit: MT19937, and NumPy's distributions.

Julia's MersenneTwister is a different generator of the same family. Logarithm and power come from the C library, as in
NumPy, because another implementation may differ in the last bit. Arrays are filled in memory order, which is NumPy's
order with the dimensions reversed.
"""
module RandomStates

export RandomState, permutation, power, randint, standard_normal, uniform

const N = 624
const M = 397

mutable struct RandomState
    key::Vector{UInt32}
    used::Int                         # how many numbers of this key were drawn
    spare::Union{Nothing,Float64}     # normal numbers are drawn in pairs
end

function RandomState(seed::Integer)
    key = Vector{UInt32}(undef, N)
    value = UInt32(seed)
    for i in 1:N
        key[i] = value
        value = 0x6c078965 * (value ⊻ (value >> 30)) + UInt32(i)
    end
    return RandomState(key, N, nothing)
end

function RandomState(seeds::AbstractVector{<:Integer})
    state = RandomState(19650218)
    key = state.key
    i, j = 2, 1
    for _ in 1:max(N, length(seeds))
        key[i] = (key[i] ⊻ ((key[i-1] ⊻ (key[i-1] >> 30)) * 0x0019660d)) + UInt32(seeds[j]) + UInt32(j - 1)
        i, j = wrap(key, i + 1), j == length(seeds) ? 1 : j + 1
    end
    for _ in 1:N-1
        key[i] = (key[i] ⊻ ((key[i-1] ⊻ (key[i-1] >> 30)) * 0x5d588b65)) - UInt32(i - 1)
        i = wrap(key, i + 1)
    end
    key[1] = 0x80000000
    return state
end

"""Return i; if i is past the end, copy the last value to the first and return 2."""
function wrap(key, i)
    i <= N && return i
    key[1] = key[N]
    return 2
end

function twist!(key)
    for i in 1:N
        y = (key[i] & 0x80000000) | (key[mod1(i + 1, N)] & 0x7fffffff)
        key[i] = key[mod1(i + M, N)] ⊻ (y >> 1) ⊻ (isodd(y) ? 0x9908b0df : 0x00000000)
    end
end

"""Return 32 random bits."""
function bits!(state)
    if state.used == N
        twist!(state.key)
        state.used = 0
    end
    state.used += 1
    y = state.key[state.used]
    y ⊻= y >> 11
    y ⊻= (y << 7) & 0x9d2c5680
    y ⊻= (y << 15) & 0xefc60000
    return y ⊻ (y >> 18)
end

"""Return a number in [0, 1) with 53 random bits."""
function double!(state)
    high, low = bits!(state) >> 5, bits!(state) >> 6
    return (Float64(high) * 67108864.0 + Float64(low)) / 9007199254740992.0
end

"""Return an integer in 0:most, by rejection."""
function interval!(state, most)
    mask = UInt32(nextpow(2, most + 1) - 1)
    while true
        value = bits!(state) & mask
        value <= most && return Int(value)
    end
end

function gauss!(state)
    if state.spare !== nothing
        value, state.spare = state.spare, nothing
        return value
    end
    while true
        x = 2.0 * double!(state) - 1.0
        y = 2.0 * double!(state) - 1.0
        square = x * x + y * y
        if 0.0 < square < 1.0
            factor = sqrt(-2.0 * ccall(:log, Cdouble, (Cdouble,), square) / square)
            state.spare = factor * x
            return factor * y
        end
    end
end

power(base, exponent) = ccall(:pow, Cdouble, (Cdouble, Cdouble), base, exponent)

# NumPy's functions; shapes are NumPy's, and the dimensions of the arrays are reversed

uniform(state, low, high, shape) = fill_array(() -> low + (high - low) * double!(state), Float64, shape)
standard_normal(state, shape) = fill_array(() -> gauss!(state), Float64, shape)
randint(state, high, shape) = fill_array(() -> interval!(state, high - 1), Int, shape)

function fill_array(draw, type, shape)
    array = Array{type}(undef, reverse(shape))
    for i in eachindex(array)
        array[i] = draw()
    end
    return array
end

"""Return the numbers 0:n-1 in random order."""
function permutation(state, n)
    order = collect(0:n-1)
    for i in n-1:-1:1
        j = interval!(state, i)
        order[i+1], order[j+1] = order[j+1], order[i+1]
    end
    return order
end

end # module
