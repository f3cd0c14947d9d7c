# Keras 3 on TensorFlow, called from R through reticulate.
#
# The module of TensorFlow handles devices, threads and arrays. This file has the training loop that Keras documents
# for TensorFlow, written in R. tf.function traces each R function once; after that no R code runs.

NAME <- "r_keras"

native <- import("stele_worker.frameworks")$load("tensorflow") # before TensorFlow, because it sets the level of logging
tf <- import("tensorflow")
keras <- import("keras")

active <- new.env()

# See stele_worker/frameworks/base.py. stele_worker/protocol.py describes the settings.
configure <- function(settings) {
  if (keras$backend$backend() != "tensorflow") {
    stop("Keras uses the backend '", keras$backend$backend(), "', but only 'tensorflow' is supported: set KERAS_BACKEND=tensorflow")
  }
  active$device <- settings$device
  active$deterministic <- settings$deterministic
  native$configure(settings)
  keras$utils$set_random_seed(settings$seed)
  keras$config$set_floatx("float32")
  keras$config$set_image_data_format("channels_last")
}

versions <- function() {
  r <- list(
    r = paste(R.version$major, R.version$minor, sep = "."),
    reticulate = as.character(utils::packageVersion("reticulate")),
    keras = keras$`__version__`
  )
  c(r, native$versions())
}

flags <- function() {
  flags <- list(
    backend = keras$backend$backend(),
    image_data_format = keras$config$image_data_format(),
    dtype_policy = keras$config$dtype_policy()$name,
    jit_compile = jit_compile(recurrent = FALSE),
    jit_compile_recurrent = jit_compile(recurrent = TRUE),
    use_cudnn = use_cudnn()
  )
  flags <- c(flags, native$flags())
  flags$memory_growth <- I(flags$memory_growth) # I(): one value per device is an array in JSON, even with one device
  flags
}

put <- native$put
take <- native$take

wait <- function(value) {
  if (active$device == "cuda") {
    tf$test$experimental$sync_devices() # on a CPU a call returns after its computation
  }
}

# Return a tensor as an array or number of R.
fetch <- function(value) native$fetch(value)

peak_memory <- function() {
  if (active$device == "cuda") {
    memory <- import("tensorflow", convert = FALSE)$config$experimental$get_memory_info("GPU:0")
    import_builtins()$float(memory[["peak"]]) # a double: reticulate would truncate an integer to 32 bits
  }
}

# Set the arithmetic of layers created from now on; their parameters are always float32.
set_policy <- function(task) {
  keras$config$set_dtype_policy(if (task$dtype == "float32") "float32" else paste0("mixed_", task$dtype))
}

# Return whether a GRU uses cuDNN; on a CPU XLA compiles the plain loop.
use_cudnn <- function() if (active$device == "cuda") "auto" else FALSE

# Return whether XLA compiles a function. On a CPU XLA makes convolutions slower and the loop over time faster; on a
# GPU the reverse is true.
jit_compile <- function(recurrent) {
  if (active$device == "cpu") recurrent else !recurrent && !active$deterministic
}

# Compile an R function of tensors into one graph.
compile_function <- function(net, run) {
  recurrent <- any(vapply(net$layers, inherits, FALSE, "keras.src.layers.rnn.rnn.RNN"))
  tf$`function`(run, autograph = FALSE, jit_compile = jit_compile(recurrent))
}

# Return run(x, y) -> list(loss, a gradient for each of net$trainable_variables).
make_gradient_function <- function(net, loss) compile_function(net, backward(net, loss))

# Return step(x, y) -> loss, which updates the parameters. prepare() runs before each update.
make_training_step <- function(net, optimiser, loss, prepare = function() NULL) {
  optimiser$build(net$trainable_variables)
  run <- backward(net, loss)
  compile_function(net, function(x, y) {
    result <- run(x, y)
    prepare()
    optimiser$apply(result[[2L]], net$trainable_variables)
    result[[1L]]
  })
}

# Return step(x) -> the network's tensor `output`, for inference.
make_inference_step <- function(net, output) {
  model <- keras$Model(net$inputs, output)
  compile_function(net, function(x) model(x, training = FALSE))
}

backward <- function(net, loss) {
  variables <- net$trainable_variables
  function(x, y) {
    with(tf$GradientTape() %as% tape, {
      value <- loss(y, net(x, training = TRUE))
    })
    # an embedding's gradient consists of slices; Keras' Adam would square slices of the same row separately
    list(value, lapply(tape$gradient(value, variables), tf$convert_to_tensor))
  }
}
