"""Process-level facts from the operating system: peak memory, processors, ending with the parent. Linux only."""
module ThisProcess

"""Make the kernel kill this process when the host dies, even without warning."""
function die_with_parent()
    PR_SET_PDEATHSIG, SIGKILL = 1, 9  # linux/prctl.h
    Sys.islinux() && ccall(:prctl, Cint, (Cint, Culong, Culong, Culong, Culong), PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
end

"""Run all threads on at most `count` processors, the first that this process may use."""
function limit_processors(count)
    allowed = processors()
    allowed === nothing && return
    mask = zeros(UInt8, 128)
    for processor in first(allowed, count)
        mask[processor÷8+1] |= 0x01 << (processor % 8)
    end
    for thread in readdir("/proc/self/task")
        ccall(:sched_setaffinity, Cint, (Cint, Csize_t, Ptr{UInt8}), parse(Int, thread), length(mask), mask)
    end
end

"""Return the numbers of the processors that this process may use, or nothing if unknown."""
function processors()
    Sys.islinux() || return nothing
    mask = zeros(UInt8, 128)
    ccall(:sched_getaffinity, Cint, (Cint, Csize_t, Ptr{UInt8}), 0, length(mask), mask)
    return [processor for processor in 0:1023 if (mask[processor÷8+1] >> (processor % 8)) & 0x01 == 0x01]
end

"""Reset the peak memory counter, if the kernel allows it (proc(5): write 5 to clear_refs)."""
function reset_peak_memory()
    try
        write("/proc/self/clear_refs", "5")
    catch error
        error isa SystemError || rethrow()
    end
end

"""Return the peak resident memory in bytes, or nothing if unknown."""
function peak_memory()
    isfile("/proc/self/status") || return nothing
    for line in eachline("/proc/self/status")
        startswith(line, "VmHWM:") && return parse(Int, split(line)[2]) * 1024
    end
    return nothing
end

end # module
