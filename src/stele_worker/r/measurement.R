# Measure one launch of one recipe. stele_worker/measurement.py describes an outcome.

clock <- module("stele_worker/r/clock.R")
find_steady_step <- import("stele_worker.clock")$find_steady_step
process <- import("stele_worker.process", convert = FALSE)
tasks <- import("stele_suite.tasks", convert = FALSE)
subjects <- import("stele_worker.subjects", convert = FALSE) # its arrays stay in NumPy

NOT_EVALUATED <- list(accuracy = NULL, evaluated = 0L)
PROGRESS_SECONDS <- 1.0 # minimum time between two progress messages, so that they do not disturb the steps

# Train for the Task's epochs, time every step, then evaluate. Return an outcome.
# With `steps`, stop after so many and do not evaluate.
train <- function(framework, task, host, data, weights, warmup, turn, steps) {
  recipe <- load_recipe(task, framework)
  xy <- lapply(load_samples(task, data, "train", recipe), framework$put)
  process$reset_peak_memory()
  net <- recipe$load(recipe$network(task), initial_weights(task, weights, recipe))
  step <- recipe$training_step(net, task)
  epochs <- seq_len(task$epochs) - 1L
  rows <- unlist(lapply(epochs, function(epoch) iterate(tasks$batch_order(task, epoch))), recursive = FALSE)
  rows <- head(rows, if (is.null(steps)) length(rows) else steps)
  report <- progress_reporter(host, "train", length(rows))
  seconds <- numeric()
  losses <- list()
  next_batch <- function() {
    if (length(seconds) < length(rows)) {
      lapply(xy, framework$take, rows[[length(seconds) + 1L]])
    }
  }
  next_turn <- take_turns(next_batch, function() length(seconds), turn, host)
  clock$time_steps(step, next_turn, framework$wait, function(duration, loss) {
    seconds[length(seconds) + 1L] <<- duration
    losses[[length(seconds)]] <<- loss
    report(length(seconds))
  })
  steady <- find_steady_step(as.list(seconds), warmup$window, warmup$tolerance)
  unsteady <- min(warmup$most, length(seconds) %/% 2L)
  outcome <- summarise(framework, task, seconds, if (is.null(steady)) unsteady else steady, !is.null(steady))
  evaluation <- if (is.null(steps)) evaluate(framework, recipe, net, task, data, host) else NOT_EVALUATED
  outcome$learning <- c(list(losses = I(vapply(losses, framework$fetch, 0))), evaluation)
  outcome
}

# Warm up until the step times stop trending, then time the Task's test batches. Return an outcome.
# With `steps`, stop after so many in all, the warm-up included.
infer <- function(framework, task, host, data, weights, warmup, turn, steps) {
  recipe <- load_recipe(task, framework)
  x <- framework$put(load_samples(task, data, "test", recipe)[[1L]])
  process$reset_peak_memory()
  step <- recipe$inference_step(recipe$load(recipe$network(task), initial_weights(task, weights, recipe)), task)
  test_rows <- iterate(make_subject(task, recipe)$rows("test"))
  report <- progress_reporter(host, "infer", length(test_rows))
  seconds <- numeric()
  warmup_steps <- NULL # number of warm-up steps, known once the warm-up has ended
  most <- if (is.null(steps)) warmup$most else min(warmup$most, max(steps %/% 2L, 1L))
  is_trending <- function() is.null(find_steady_step(as.list(seconds), warmup$window, warmup$tolerance))
  next_batch <- function() {
    if (is.null(warmup_steps) && !(is_trending() && length(seconds) < most)) {
      warmup_steps <<- length(seconds)
    }
    if (is.null(warmup_steps)) {
      list(framework$take(x, test_rows[[length(seconds) %% length(test_rows) + 1L]]))
    } else if (length(seconds) < (if (is.null(steps)) warmup_steps + length(test_rows) else steps)) {
      list(framework$take(x, test_rows[[(length(seconds) - warmup_steps) %% length(test_rows) + 1L]]))
    }
  }
  next_turn <- take_turns(next_batch, function() length(seconds), turn, host)
  clock$time_steps(step, next_turn, framework$wait, function(duration, result) {
    seconds[length(seconds) + 1L] <<- duration
    report(if (is.null(warmup_steps)) 0L else length(seconds) - warmup_steps)
  })
  steady <- find_steady_step(as.list(seconds[seq_len(warmup_steps)]), warmup$window, warmup$tolerance)
  summarise(framework, task, seconds, warmup_steps, !is.null(steady))
}

# Return the part of an outcome that training and inference share. Call it before anything else uses memory.
summarise <- function(framework, task, seconds, warmup, steady) {
  list(
    steps = list(seconds = I(seconds), warmup = as.integer(warmup), steady = steady, batch = task$batch),
    memory = list(host = to_double(process$peak_memory()), device = framework$peak_memory())
  )
}

# Return the accuracy on the Task's test samples, and their number.
evaluate <- function(framework, recipe, net, task, data, host) {
  if (is.null(task$data)) {
    return(NOT_EVALUATED)
  }
  xy <- load_samples(task, data, "test", recipe)
  x <- framework$put(xy[[1L]])
  y <- py_to_r(xy[[2L]])
  step <- recipe$inference_step(net, task)
  rows <- iterate(make_subject(task, recipe)$rows("test"))
  report <- progress_reporter(host, "evaluate", length(rows))
  correct <- 0L
  for (done in seq_along(rows)) {
    logits <- framework$fetch(step(framework$take(x, rows[[done]])))
    correct <- correct + sum(max.col(logits, ties.method = "first") == y[py_to_r(rows[[done]]) + 1L] + 1L)
    report(done)
  }
  list(accuracy = correct / (length(rows) * task$batch), evaluated = length(rows) * task$batch)
}

# Return the module stele_suite/recipes/<task>/<framework>.R.
load_recipe <- function(task, framework) module(sprintf("stele_suite/recipes/%s/%s.R", task$name, framework$NAME))

# Return the inputs and labels that the Task uses of a part, "train" or "test", of its data set, as NumPy arrays.
load_samples <- function(task, data, part, recipe) iterate(make_subject(task, recipe)$samples(part, data))

# Return the weights in the file `path`, or the Task's seeded weights if it is NULL: a list of R arrays by name.
initial_weights <- function(task, path, recipe) py_to_r(make_subject(task, recipe)$weights(path))

# Return the subject of a Task. Of an R recipe it needs the layout alone.
make_subject <- function(task, recipe) {
  subjects$TaskSubject(task, import("types", convert = FALSE)$SimpleNamespace(LAYOUT = recipe$LAYOUT))
}

# Return a Python number as an R double, or NULL for None; reticulate would truncate an integer to 32 bits.
to_double <- function(number) {
  if (!is.null(py_to_r(number))) import_builtins()$float(number)
}

# Return next_batch with a pause before the first step and after every `turn` steps.
take_turns <- function(next_batch, done, turn, host) {
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

# Return report(done), which ends an interrupted request and sends progress at most once every PROGRESS_SECONDS.
progress_reporter <- function(host, phase, of) {
  last <- clock$now()
  function(done) {
    stop_if_interrupted()
    if (clock$now() - last >= PROGRESS_SECONDS) {
      host$report(phase = phase, done = done, of = of)
      last <<- clock$now()
    }
  }
}
