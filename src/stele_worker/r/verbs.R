# What an R worker can be asked. Fields and results of each verb stand in stele_worker/protocol.py.
# Python lives in this process, by way of reticulate: the Task, its seeds and its data come from there.

library(reticulate)

process <- import("stele_worker.process")
process$die_with_parent()
tasks <- import("stele_worker.tasks")
clock <- module("r/clock.R")
measurement <- module("r/measurement.R")
agreement <- module("r/agreement.R")

PROTOCOL <- 3L

configured <- new.env() # the framework in force, as a module, and the dtype of its arithmetic

# Carry out a request, a list of verb and fields. host is told of progress, and asked to go on.
do <- function(request, host) {
  verb <- request[["verb"]]
  request[["verb"]] <- NULL
  if (!is.character(verb) || !verb %in% names(VERBS)) {
    stop("unknown verb '", format(verb), "'; this worker knows ", paste(sort(names(VERBS)), collapse = ", "))
  }
  do.call(VERBS[[verb]], c(list(host), request))
}

hello <- function(host) {
  list(
    protocol = PROTOCOL,
    python = import("platform")$python_version(),
    numpy = import("numpy")$`__version__`,
    r = paste(R.version$major, R.version$minor, sep = "."),
    pid = Sys.getpid()
  )
}

configure <- function(host, framework, settings) {
  process$keep_to(as.integer(settings$threads))
  settings$seed <- whole(settings$seed)
  start <- clock$now()
  chosen <- module(paste0("frameworks/", framework, ".R"))
  import_seconds <- clock$now() - start
  chosen$configure(settings)
  configured$framework <- chosen
  configured$dtype <- if (settings$precision == "bf16") "bfloat16" else "float32"
  list(
    import_seconds = import_seconds,
    versions = chosen$versions(),
    flags = c(chosen$flags(), list(processors = I(process$processors())))
  )
}

train <- function(host, task, scale, seed, form = NULL, data, weights, warmup, turn = NULL) {
  measurement$train(framework(), subject(task, scale, seed, form), host, data, weights, warmup, turn)
}

infer <- function(host, task, scale, seed, form = NULL, data, weights, warmup, turn = NULL) {
  measurement$infer(framework(), subject(task, scale, seed, form), host, data, weights, warmup, turn)
}

parity <- function(host, task, phase, seed, form = NULL) {
  agreement$check(framework(), subject(task, "paper", seed, form), phase)
}

framework <- function() {
  if (is.null(configured$framework)) {
    stop("no framework yet: send 'configure' first")
  }
  configured$framework
}

# The Task asked for, in another form if one is named: Python's own value, whose fields R reads with $.
subject <- function(task, scale, seed, form) {
  changes <- list(seed = whole(seed), dtype = configured$dtype)
  if (!is.null(form)) {
    changes$form <- form
  }
  do.call(tasks$make, c(list(task, scale), changes))
}

# A whole number for Python; R has none beyond 2^31 and calls it real.
whole <- function(number) import_builtins(convert = FALSE)$int(number)

VERBS <- list(hello = hello, configure = configure, train = train, infer = infer, parity = parity)
