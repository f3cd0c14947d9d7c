# The timed region: run steps one by one and wait for the device. Knows no framework.

python_gc <- import("gc")

# Seconds. R's only clock that is finer than a millisecond; asking Python's would cost the step 0.1 ms.
now <- function() as.numeric(Sys.time())

# Run step on each batch that next_batch() gives, until that is NULL; call each(duration in seconds, result) after it.
# The clock starts when a batch lies ready on the device and stops when the step's result has been computed. R lets go
# of a batch only when it collects garbage, so it does between two steps; Python does before the first only.
run <- function(step, next_batch, wait, each) {
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
