# GRU on IMDB in Keras 3 from R: Sequential; Keras' documented loop in R, traced into one graph per step.

r_keras <- module("stele_worker/frameworks/r_keras/framework.R")
tf <- import("tensorflow")
keras <- import("keras")
layers <- keras$layers

LAYOUT <- NULL

network <- function(task) {
  r_keras$set_policy(task)
  recurrent <- layers$GRU(
    task$hidden,
    activation = "tanh",
    recurrent_activation = "sigmoid",
    use_bias = TRUE,
    reset_after = TRUE,
    unroll = FALSE, # 150 unrolled steps compile for seconds and are not faster
    use_cudnn = r_keras$use_cudnn(),
    name = "gru"
  )
  keras$Sequential(list(
    keras$Input(tuple(task$length), dtype = "int32"),
    layers$Embedding(task$vocabulary, task$embedding, name = "embedding"), # (batch, 150, 125)
    recurrent, # (batch, 100), of the last step
    layers$Dense(2L, dtype = "float32", name = "dense") # (batch, 2)
  ))
}

# Reorder the three gates along the columns: r, z, n to Keras' z, r, h, or back.
reorder_gates <- function(gates) {
  hidden <- ncol(gates) %/% 3L
  gates[, c(hidden + seq_len(hidden), seq_len(hidden), 2L * hidden + seq_len(hidden))]
}

load <- function(net, weights) {
  kernels <- lapply(c("input", "hidden"), function(name) reorder_gates(t(weights[[sprintf("gru.%s_weight", name)]])))
  biases <- unname(rbind(weights$gru.input_bias, weights$gru.hidden_bias)) # (2, 300)
  net$get_layer("embedding")$set_weights(list(weights$embedding.weight))
  net$get_layer("gru")$set_weights(c(kernels, list(reorder_gates(biases))))
  net$get_layer("dense")$set_weights(list(t(weights$dense.weight), weights$dense.bias))
  net
}

# Return Keras' list of parameters or gradients under the Task's names.
to_task_names <- function(values) {
  values <- setNames(values, c("embedding", "input", "hidden", "biases", "weight", "bias"))
  biases <- tf$unstack(values$biases)
  list(
    embedding.weight = values$embedding,
    gru.input_weight = values$input,
    gru.hidden_weight = values$hidden,
    gru.input_bias = biases[[1L]],
    gru.hidden_bias = biases[[2L]],
    dense.weight = values$weight,
    dense.bias = values$bias
  )
}

cross_entropy <- function() {
  keras$losses$SparseCategoricalCrossentropy(from_logits = TRUE, reduction = "sum_over_batch_size")
}

gradients <- function(net, task) {
  differentiate <- r_keras$make_gradient_function(net, cross_entropy())
  function(x, y) {
    computed <- differentiate(x, y)
    list(loss = computed[[1L]], gradients = to_task_names(computed[[2L]]))
  }
}

training_step <- function(net, task) {
  optimiser <- keras$optimizers$Adam(
    task$learning_rate,
    beta_1 = task$beta1, beta_2 = task$beta2, epsilon = task$epsilon, amsgrad = FALSE
  )
  # Keras adds epsilon before it corrects the second moment, the Task adds it after: so correct
  # epsilon by the same factor; without it the tenth loss is 6e-4 off
  correct <- function() {
    step <- tf$cast(tf$add(optimiser$iterations, 1L), "float32")
    root <- tf$sqrt(tf$subtract(1, tf$pow(task$beta2, step)))
    optimiser$epsilon <- tf$multiply(task$epsilon, root)
  }
  r_keras$make_training_step(net, optimiser, cross_entropy(), prepare = correct)
}

inference_step <- function(net, task) r_keras$make_inference_step(net, net$outputs[[1L]])

stored <- function(net) to_task_names(net$weights)

neutral <- function(name, array) {
  if (name == "embedding.weight") {
    return(array)
  }
  if (startsWith(name, "gru.")) {
    array <- reorder_gates(if (is.matrix(array)) array else matrix(array, 1L)) # back to r, z, n
  }
  if (endsWith(name, "bias")) c(array) else t(array)
}
