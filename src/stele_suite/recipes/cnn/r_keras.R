# CNN on CIFAR-10 in Keras 3 from R: Sequential; Keras' documented loop in R, traced into one graph per step.

r_keras <- module("stele_worker/frameworks/r_keras/framework.R")
keras <- import("keras")
layers <- keras$layers

LAYOUT <- "NHWC"

convolution <- function(name, channels, activation) {
  layers$Conv2D(channels, 3L, padding = "same", activation = activation, use_bias = TRUE, name = name)
}

network <- function(task) {
  r_keras$set_policy(task)
  keras$Sequential(list(
    keras$Input(tuple(32L, 32L, 3L)),
    convolution("conv1", 50L, "relu"), # (batch, 32, 32, 50)
    convolution("conv2", 50L, NULL),
    layers$MaxPooling2D(2L, strides = 2L, padding = "valid"), # (batch, 16, 16, 50)
    layers$ReLU(),
    layers$Dropout(task$dropout[[1L]]),
    convolution("conv3", 100L, "relu"), # (batch, 16, 16, 100)
    convolution("conv4", 100L, NULL),
    layers$MaxPooling2D(2L, strides = 2L, padding = "valid"), # (batch, 8, 8, 100)
    layers$ReLU(),
    layers$Dropout(task$dropout[[2L]]),
    layers$Flatten(), # (batch, 6400)
    layers$Dense(512L, activation = "relu", name = "dense1"),
    layers$Dropout(task$dropout[[3L]]),
    layers$Dense(10L, dtype = "float32", name = "dense2") # (batch, 10)
  ))
}

NAMES <- c("conv1", "conv2", "conv3", "conv4", "dense1", "dense2")
PARAMETERS <- paste0(rep(NAMES, each = 2L), c(".weight", ".bias"))

load <- function(net, weights) {
  for (name in NAMES) {
    kernel <- weights[[paste0(name, ".weight")]]
    if (length(dim(kernel)) == 4L) {
      kernel <- aperm(kernel, c(3L, 4L, 2L, 1L)) # (height, width, in, out)
    } else if (name == "dense1") { # its inputs are ordered row, column, channel
      kernel <- aperm(array_reshape(kernel, c(512L, 100L, 8L, 8L)), c(3L, 4L, 2L, 1L))
      kernel <- array_reshape(kernel, c(6400L, 512L))
    } else {
      kernel <- t(kernel) # (in, out)
    }
    net$get_layer(name)$set_weights(list(kernel, weights[[paste0(name, ".bias")]]))
  }
  net
}

cross_entropy <- function() {
  keras$losses$SparseCategoricalCrossentropy(from_logits = TRUE, reduction = "sum_over_batch_size")
}

gradients <- function(net, task) {
  differentiate <- r_keras$make_gradient_function(net, cross_entropy())
  function(x, y) {
    computed <- differentiate(x, y)
    list(loss = computed[[1L]], gradients = setNames(computed[[2L]], PARAMETERS))
  }
}

training_step <- function(net, task) {
  optimiser <- keras$optimizers$SGD(
    task$learning_rate,
    momentum = task$momentum, nesterov = FALSE, weight_decay = NULL
  )
  r_keras$make_training_step(net, optimiser, cross_entropy())
}

inference_step <- function(net, task) r_keras$make_inference_step(net, net$outputs[[1L]])

stored <- function(net) setNames(net$weights, PARAMETERS)

neutral <- function(name, array) {
  if (name == "dense1.weight") {
    return(array_reshape(aperm(array_reshape(t(array), c(512L, 8L, 8L, 100L)), c(1L, 4L, 2L, 3L)), c(512L, 6400L)))
  }
  switch(max(1L, length(dim(array))), array, t(array), NULL, aperm(array, c(4L, 3L, 1L, 2L)))
}
