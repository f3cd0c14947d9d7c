# What one recipe computes on a small fixed batch; numbers as stele_worker/agreement.py describes them.

measurement <- module("r/measurement.R")
tasks <- import("stele_worker.tasks", convert = FALSE)
python <- import("stele_worker.agreement", convert = FALSE) # its arrays stay NumPy's
sketch <- import("stele_worker.sketch")$sketch

# Compute the numbers of a phase, "infer", "train" or "repeat", from the Task's seeded weights.
check <- function(framework, task, phase) {
  recipe <- measurement$recipe_of(task, framework)
  weights <- tasks$weights(task)
  xy <- iterate(tasks$load(task$name)$example(python$BATCH[[task$name]], task_seed(task)))
  fingerprint <- py_to_r(python$fingerprint(task, weights, xy[[1L]], xy[[2L]]))
  x <- framework$put(python$arranged(xy[[1L]], recipe$LAYOUT))
  y <- framework$put(xy[[2L]])
  c(list(task = fingerprint), PHASES[[phase]](framework, recipe, task, weights, x, y))
}

inference <- function(framework, recipe, task, weights, x, y) {
  net <- recipe$load(recipe$network(task), py_to_r(weights))
  step <- recipe$inference_step(net, task)
  logits <- framework$fetch(step(x))
  list(
    unequal = py_to_r(python$unequal(parameters(framework, recipe, net), weights)),
    layers = NULL,
    logits = logits,
    repeats = alike(logits, framework$fetch(step(x))),
    tracked = NULL
  )
}

# Whether two calls differ by no more than the order in which threads may sum: a thousandth of the largest number.
alike <- function(first, second) max(abs(first - second)) <= 1e-3 * max(abs(first))

training <- function(framework, recipe, task, weights, x, y) {
  task <- import("stele_worker.tasks")$without_dropout(task)
  start <- py_to_r(weights)
  net <- recipe$load(recipe$network(task), start)
  unequal <- py_to_r(python$unequal(parameters(framework, recipe, net), weights))
  first <- recipe$gradients(net, task)(x, y)
  gradients <- neutral(framework, recipe, first$gradients)
  net <- recipe$load(recipe$network(task), start)
  step <- recipe$training_step(net, task)
  updates <- list()
  losses <- numeric()
  for (count in seq_len(py_to_r(python$STEPS[[task$name]]))) {
    losses[[count]] <- framework$fetch(step(x, y))
    if (count %in% unlist(py_to_r(python$SHOWN))) {
      updates[[as.character(count)]] <- updates_since(parameters(framework, recipe, net), start, names(gradients))
    }
  }
  list(
    unequal = unequal,
    loss = framework$fetch(first$loss),
    gradients = lapply(gradients, sketch),
    updates = updates,
    losses = I(losses)
  )
}

repetition <- function(framework, recipe, task, weights, x, y) {
  net <- recipe$load(recipe$network(task), py_to_r(weights))
  step <- recipe$training_step(net, task)
  losses <- replicate(py_to_r(python$REPEATED), framework$fetch(step(x, y)))
  list(losses = I(losses), digest = py_to_r(python$digest(parameters(framework, recipe, net))))
}

PHASES <- list(train = training, infer = inference, `repeat` = repetition)

# What a network holds, as in the Task.
parameters <- function(framework, recipe, net) neutral(framework, recipe, recipe$stored(net))

# Values of parameters as R's arrays, in the Task's layout.
neutral <- function(framework, recipe, values) {
  Map(function(name, value) recipe$neutral(name, framework$fetch(value)), names(values), values)
}

# How far each of the parameters is from where it started.
updates_since <- function(stored, weights, names) {
  sapply(names, function(name) sketch(stored[[name]] - weights[[name]]), simplify = FALSE)
}

# As Python's whole number, of which R's keeps 32 bits.
task_seed <- function(task) py_get_attr(task, "seed")
