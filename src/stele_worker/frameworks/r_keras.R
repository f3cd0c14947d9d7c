# Keras 3 on TensorFlow, called from R through reticulate, around any Task.
#
# Devices, threads and arrays are asked of the TensorFlow row's own module. What is here is the training loop that
# Keras documents for TensorFlow, written in R: R functions that tf.function traces once and then runs by itself.

NAME <- "r_keras"

native <- import("stele_worker.frameworks.tensorflow") # before TensorFlow, whose level of logging it sets
tf <- import("tensorflow")
keras <- import("keras")

in_force <- new.env()

# See stele_worker/frameworks/__init__.py; settings as in stele_worker/protocol.py.
configure <- function(settings) {
  if (keras$backend$backend() != "tensorflow") {
    stop("Keras runs on '", keras$backend$backend(), "' here: set KERAS_BACKEND=tensorflow")
  }
  in_force$device <- settings$device
  in_force$deterministic <- settings$deterministic
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
  flags$memory_growth <- I(flags$memory_growth) # one a device, be it a single one
  flags
}

put <- native$put
take <- native$take

wait <- function(value) {
  if (in_force$device == "cuda") {
    tf$test$experimental$sync_devices() # on a CPU a call returns when it has been computed
  }
}

# A tensor as an array or number of R.
fetch <- function(value) native$fetch(value)

peak_memory <- function() {
  if (in_force$device == "cuda") {
    memory <- import("tensorflow", convert = FALSE)$config$experimental$get_memory_info("GPU:0")
    import_builtins()$float(memory[["peak"]]) # real: reticulate cuts a whole number to 32 bits
  }
}

# The arithmetic of the layers made from now on; their parameters stay float32.
set_policy <- function(task) {
  keras$config$set_dtype_policy(if (task$dtype == "float32") "float32" else paste0("mixed_", task$dtype))
}

# Whether a GRU is cuDNN's; on a CPU XLA compiles the plain one.
use_cudnn <- function() if (in_force$device == "cuda") "auto" else FALSE

# Never "auto". On a CPU XLA slows convolutions and speeds the loop over time; on a GPU it is the other way round.
jit_compile <- function(recurrent) {
  if (in_force$device == "cpu") recurrent else !recurrent && !in_force$deterministic
}

# An R function of tensors as one graph.
compiled <- function(net, traced) {
  recurrent <- any(vapply(net$layers, inherits, FALSE, "keras.src.layers.rnn.rnn.RNN"))
  tf$`function`(traced, autograph = FALSE, jit_compile = jit_compile(recurrent))
}

# run(x, y) -> list(loss, a gradient for each of net$trainable_variables)
differentiated <- function(net, loss) compiled(net, backward(net, loss))

# step(x, y) -> loss, after which the parameters have moved; prepare() comes before each update.
trained <- function(net, optimiser, loss, prepare = function() NULL) {
  optimiser$build(net$trainable_variables)
  run <- backward(net, loss)
  compiled(net, function(x, y) {
    computed <- run(x, y)
    prepare()
    optimiser$apply(computed[[2L]], net$trainable_variables)
    computed[[1L]]
  })
}

# step(x) -> the network's tensor output, for inference
inferred <- function(net, output) {
  model <- keras$Model(net$inputs, output)
  compiled(net, function(x) model(x, training = FALSE))
}

backward <- function(net, loss) {
  variables <- net$trainable_variables
  function(x, y) {
    with(tf$GradientTape() %as% tape, {
      value <- loss(y, net(x, training = TRUE))
    })
    # an embedding's gradient comes as slices, and Keras' Adam squares those of one row one by one
    list(value, lapply(tape$gradient(value, variables), tf$convert_to_tensor))
  }
}
