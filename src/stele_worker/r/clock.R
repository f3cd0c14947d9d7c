# The timed region: run steps one by one and wait for the device. Independent of the framework.

python_gc <- import("gc")

# Return the time in seconds. R has no other clock finer than a millisecond; Python's clock would cost 0.1 ms a step.
now <- function() as.numeric(Sys.time())

# Run step on each batch from next_batch() until that returns NULL; call each(duration in seconds, result) after each
# step. The clock starts when a batch is ready on the device and stops when the step's result has been computed. R
# frees a batch only when it collects garbage, so R collects between two steps; Python collects before the first only.
time_steps <- function(step, next_batch, wait, each) {
  python_gc$collect()
  python_gc$disable()
  on.exit(python_gc$enable())
  while (!is.null(batch <- next_batch())) {
    gc(full = FALSE)
    wait(batch)
    start <- now()
    result <- do.call(step, batch)
    wait(result)
    each(now() - start, result)
  }
}
