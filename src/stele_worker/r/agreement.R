# Compute what one recipe computes on a small fixed batch. stele_worker/agreement.py describes the numbers.

measurement <- module("stele_worker/r/measurement.R")
tasks <- import("stele_suite.tasks", convert = FALSE)
python <- import("stele_worker.agreement", convert = FALSE) # its arrays stay in NumPy
sketch <- import("stele_worker.sketch")$sketch

# Return the numbers of a phase, "infer", "train" or "repeat", from the Task's seeded weights.
check <- function(framework, task, phase) {
  recipe <- measurement$load_recipe(task, framework)
  weights <- tasks$weights(task)
  subject <- measurement$make_subject(task, recipe)
  batch <- subject$parity_batch()
  fingerprint <- py_to_r(python$fingerprint(task, weights, batch))
  xy <- lapply(iterate(subject$arrange(batch)), framework$put)
  c(list(task = fingerprint), PHASES[[phase]](framework, recipe, task, weights, xy[[1L]], xy[[2L]]))
}

infer <- function(framework, recipe, task, weights, x, y) {
  net <- recipe$load(recipe$network(task), py_to_r(weights))
  step <- recipe$inference_step(net, task)
  logits <- framework$fetch(step(x))
  list(
    unequal = py_to_r(python$find_unequal(read_parameters(framework, recipe, net), weights)),
    layers = NULL,
    logits = logits,
    repeats = calls_agree(logits, framework$fetch(step(x))),
    tracked = NULL
  )
}

# Return whether two outputs differ by at most 1/1000 of the largest number: threads may change the sum order.
calls_agree <- function(first, second) max(abs(first - second)) <= 1e-3 * max(abs(first))

train <- function(framework, recipe, task, weights, x, y) {
  task <- import("stele_suite.tasks")$without_dropout(task)
  initial <- py_to_r(weights)
  net <- recipe$load(recipe$network(task), initial)
  unequal <- py_to_r(python$find_unequal(read_parameters(framework, recipe, net), weights))
  first_step <- recipe$gradients(net, task)(x, y)
  gradients <- to_neutral(framework, recipe, first_step$gradients)
  net <- recipe$load(recipe$network(task), initial)
  step <- recipe$training_step(net, task)
  updates <- list()
  losses <- numeric()
  for (count in seq_len(py_to_r(measurement$make_subject(task, recipe)$parity_steps))) {
    losses[[count]] <- framework$fetch(step(x, y))
    if (count %in% unlist(py_to_r(python$UPDATE_STEPS))) {
      stored <- read_parameters(framework, recipe, net)
      updates[[as.character(count)]] <- updates_since(stored, initial, names(gradients))
    }
  }
  list(
    unequal = unequal,
    loss = framework$fetch(first_step$loss),
    gradients = lapply(gradients, sketch),
    updates = updates,
    losses = I(losses)
  )
}

repeat_training <- function(framework, recipe, task, weights, x, y) {
  net <- recipe$load(recipe$network(task), py_to_r(weights))
  step <- recipe$training_step(net, task)
  losses <- replicate(py_to_r(python$REPEAT_STEPS), framework$fetch(step(x, y)))
  list(losses = I(losses), digest = py_to_r(python$digest(read_parameters(framework, recipe, net))))
}

PHASES <- list(train = train, infer = infer, `repeat` = repeat_training)

# Return the parameters of a network, as in the Task.
read_parameters <- function(framework, recipe, net) to_neutral(framework, recipe, recipe$stored(net))

# Return a framework's values of parameters as R arrays in the Task's layout.
to_neutral <- function(framework, recipe, values) {
  Map(function(name, value) recipe$neutral(name, framework$fetch(value)), names(values), values)
}

# Return the change of each parameter since `weights`: sketches by name.
updates_since <- function(stored, weights, names) {
  sapply(names, function(name) sketch(stored[[name]] - weights[[name]]), simplify = FALSE)
}
