# The verbs of an R worker. stele_worker/protocol.py lists the fields and the result of each verb.
# This process also runs Python, through reticulate, which provides the Task, its seeds and its data.

library(reticulate)

process <- import("stele_worker.process")
process$die_with_parent()
tasks <- import("stele_suite.tasks")
clock <- module("stele_worker/r/clock.R")
measurement <- module("stele_worker/r/measurement.R")
agreement <- module("stele_worker/r/agreement.R")

PROTOCOL <- 1L

configuration <- new.env() # set by configure: the framework's module, and the dtype of its arithmetic

# Carry out a request, a list of verb and fields, and return its result. host receives progress and pauses.
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
  process$limit_processors(as.integer(settings$threads))
  settings$seed <- to_python_int(settings$seed)
  start <- clock$now()
  framework_module <- module(file.path("stele_worker/frameworks", framework, "framework.R"))
  import_seconds <- clock$now() - start
  framework_module$configure(settings)
  configuration$framework <- framework_module
  configuration$dtype <- if (settings$precision == "bf16") "bfloat16" else "float32"
  list(
    import_seconds = import_seconds,
    versions = framework_module$versions(),
    flags = c(framework_module$flags(), list(processors = I(process$processors())))
  )
}

train <- function(host, task, scale, seed, form = NULL, data, weights, warmup, turn = NULL,
                  steps = NULL) {
  task <- make_task(task, scale, seed, form)
  measurement$train(active_framework(), task, host, data, weights, warmup, turn, steps)
}

infer <- function(host, task, scale, seed, form = NULL, data, weights, warmup, turn = NULL,
                  steps = NULL) {
  task <- make_task(task, scale, seed, form)
  measurement$infer(active_framework(), task, host, data, weights, warmup, turn, steps)
}

parity <- function(host, task, phase, seed, form = NULL) {
  agreement$check(active_framework(), make_task(task, "parity", seed, form), phase)
}

active_framework <- function() {
  if (is.null(configuration$framework)) {
    stop("no framework is configured: send 'configure' first")
  }
  configuration$framework
}

# Return the requested Task, in `form` unless that is NULL: a Python object, whose fields R reads with $.
make_task <- function(task, scale, seed, form) {
  changes <- list(seed = to_python_int(seed), dtype = configuration$dtype)
  if (!is.null(form)) {
    changes$form <- form
  }
  do.call(tasks$make, c(list(task, scale), changes))
}

# Return a number as a Python integer; R stores integers above 2^31 as doubles.
to_python_int <- function(number) import_builtins(convert = FALSE)$int(number)

VERBS <- list(hello = hello, configure = configure, train = train, infer = infer, parity = parity)
