# What one recipe computes on a small fixed batch; numbers as stele_worker/agreement.py describes them.

measurement <- module("r/measurement.R")
tasks <- import("stele_worker.tasks", convert = FALSE)
python <- import("stele_worker.agreement", convert = FALSE) # its arrays stay NumPy's

# Compute the numbers of a phase, "train" or "infer", from the Task's seeded weights.
check <- function(framework, task, phase) {
  recipe <- measurement$recipe_of(task, framework)
  weights <- tasks$load(task$name)$weights(task_seed(task))
  xy <- iterate(tasks$load(task$name)$example(python$BATCH[[task$name]], task_seed(task)))
  fingerprint <- py_to_r(python$fingerprint(task, weights, xy[[1L]], xy[[2L]]))
  x <- framework$put(python$arranged(xy[[1L]], recipe$LAYOUT))
  y <- framework$put(xy[[2L]])
  c(list(task = fingerprint), PHASES[[phase]](framework, recipe, task, py_to_r(weights), x, y))
}

inference <- function(framework, recipe, task, weights, x, y) {
  step <- recipe$inference_step(recipe$load(recipe$network(task), weights), task)
  list(logits = framework$fetch(step(x)))
}

training <- function(framework, recipe, task, weights, x, y) {
  task <- import("stele_worker.tasks")$without_dropout(task)
  first <- recipe$gradients(recipe$load(recipe$network(task), weights), task)(x, y)
  step <- recipe$training_step(recipe$load(recipe$network(task), weights), task)
  losses <- replicate(py_to_r(python$STEPS[[task$name]]), framework$fetch(step(x, y)))
  list(
    loss = framework$fetch(first$loss),
    gradient_norms = lapply(first$gradients, function(gradient) norm(framework$fetch(gradient))),
    losses = I(losses)
  )
}

PHASES <- list(train = training, infer = inference)

# The Euclidean norm; R computes in double precision.
norm <- function(array) sqrt(sum(array^2))

# As Python's whole number, of which R's keeps 32 bits.
task_seed <- function(task) py_get_attr(task, "seed")
