# One launch's measurement of one recipe; an outcome as stele_worker/measurement.py describes it.

clock <- module("r/clock.R")
steady_from <- import("stele_worker.clock")$steady_from
process <- import("stele_worker.process", convert = FALSE)
tasks <- import("stele_worker.tasks", convert = FALSE)
python <- import("stele_worker.measurement", convert = FALSE) # its arrays stay NumPy's

PROGRESS_SECONDS <- 1.0 # between two progress messages: rare enough not to disturb the steps

# Train for the Task's epochs, timing every step, then evaluate.
train <- function(framework, task, host, data, weights, warmup, turn) {
  recipe <- recipe_of(task, framework)
  xy <- lapply(samples(task, data, "train", recipe$LAYOUT), framework$put)
  process$forget_peak_memory()
  net <- recipe$load(recipe$network(task), initial(task, weights))
  step <- recipe$training_step(net, task)
  epochs <- seq_len(task$epochs) - 1L
  rows <- unlist(lapply(epochs, function(epoch) iterate(tasks$batch_order(task, epoch))), recursive = FALSE)
  report <- reporter(host, "train", length(rows))
  seconds <- numeric()
  losses <- list()
  next_batch <- function() {
    if (length(seconds) < length(rows)) {
      lapply(xy, framework$take, rows[[length(seconds) + 1L]])
    }
  }
  clock$run(step, in_turns(next_batch, function() length(seconds), turn, host), framework$wait, function(duration, loss) {
    seconds[length(seconds) + 1L] <<- duration
    losses[[length(seconds)]] <<- loss
    report(length(seconds))
  })
  steady <- steady_from(as.list(seconds), warmup$window, warmup$tolerance)
  unsteady <- min(warmup$most, length(seconds) %/% 2L)
  outcome <- summary(framework, task, seconds, if (is.null(steady)) unsteady else steady, !is.null(steady))
  outcome$losses <- I(vapply(losses, framework$fetch, 0))
  c(outcome, evaluation(framework, recipe, net, task, data, host))
}

# Warm up until steps stop trending, then time the Task's test batches.
infer <- function(framework, task, host, data, weights, warmup, turn) {
  recipe <- recipe_of(task, framework)
  x <- framework$put(samples(task, data, "test", recipe$LAYOUT)[[1L]])
  process$forget_peak_memory()
  step <- recipe$inference_step(recipe$load(recipe$network(task), initial(task, weights)), task)
  counted <- iterate(python$whole_batches(task))
  report <- reporter(host, "infer", length(counted))
  seconds <- numeric()
  warm <- NULL # how many steps the warm-up took, once it is over
  trending <- function() is.null(steady_from(as.list(seconds), warmup$window, warmup$tolerance))
  next_batch <- function() {
    if (is.null(warm) && !(trending() && length(seconds) < warmup$most)) {
      warm <<- length(seconds)
    }
    if (is.null(warm)) {
      list(framework$take(x, counted[[length(seconds) %% length(counted) + 1L]]))
    } else if (length(seconds) - warm < length(counted)) {
      list(framework$take(x, counted[[length(seconds) - warm + 1L]]))
    }
  }
  clock$run(step, in_turns(next_batch, function() length(seconds), turn, host), framework$wait, function(duration, result) {
    seconds[length(seconds) + 1L] <<- duration
    report(if (is.null(warm)) 0L else length(seconds) - warm)
  })
  steady <- steady_from(as.list(seconds[seq_len(warm)]), warmup$window, warmup$tolerance)
  summary(framework, task, seconds, warm, !is.null(steady))
}

# What training and inference have in common. Memory first: what follows may need more of it.
summary <- function(framework, task, seconds, warmup, steady) {
  list(
    host_memory = real(process$peak_memory()),
    device_memory = framework$peak_memory(),
    seconds = I(seconds),
    warmup = as.integer(warmup),
    steady = steady,
    batch = task$batch
  )
}

# Accuracy on the Task's test samples.
evaluation <- function(framework, recipe, net, task, data, host) {
  if (is.null(task$data)) {
    return(list(accuracy = NULL, evaluated = 0L))
  }
  xy <- samples(task, data, "test", recipe$LAYOUT)
  x <- framework$put(xy[[1L]])
  y <- py_to_r(xy[[2L]])
  step <- recipe$inference_step(net, task)
  rows <- iterate(python$whole_batches(task))
  report <- reporter(host, "evaluate", length(rows))
  right <- 0L
  for (done in seq_along(rows)) {
    logits <- framework$fetch(step(framework$take(x, rows[[done]])))
    right <- right + sum(max.col(logits, ties.method = "first") == y[py_to_r(rows[[done]]) + 1L] + 1L)
    report(done)
  }
  list(accuracy = right / (length(rows) * task$batch), evaluated = length(rows) * task$batch)
}

# The functions of stele_worker/recipes/<task>/<framework>.R.
recipe_of <- function(task, framework) module(sprintf("recipes/%s/%s.R", task$name, framework$NAME))

# The Task's share of a data set's part, "train" or "test": inputs and labels, as NumPy's arrays.
samples <- function(task, data, part, layout) iterate(python$samples(task, data, part, layout))

# The weights to start from, the file's or the Task's seeded ones: a list of R's arrays by name.
initial <- function(task, path) py_to_r(python$initial(task, path))

# A number of Python's, or NULL for None. Real, for reticulate cuts a whole one to 32 bits.
real <- function(number) {
  if (!is.null(py_to_r(number))) import_builtins()$float(number)
}

# next_batch(), after a pause before the first step and after each turn of them: another worker may have its turn.
in_turns <- function(next_batch, done, turn, host) {
  if (is.null(turn)) {
    return(next_batch)
  }
  function() {
    batch <- next_batch()
    if (!is.null(batch) && done() %% turn == 0L) {
      host$pause(done())
    }
    batch
  }
}

# report(done) tells the host how far it is, but seldom.
reporter <- function(host, phase, of) {
  last <- clock$now()
  function(done) {
    if (clock$now() - last >= PROGRESS_SECONDS) {
      host$tell(phase = phase, done = done, of = of)
      last <<- clock$now()
    }
  }
}
