# ResNet-50 v1.5 in Keras 3 from R: functional; Keras' documented loop in R, traced into one graph per step.

r_keras <- module("stele_worker/frameworks/r_keras/framework.R")
resnet50 <- import("stele_suite.tasks.resnet50")
keras <- import("keras")
layers <- keras$layers

LAYOUT <- "NHWC"

convolution <- function(x, name, channels, size, stride) {
  padding <- "same"
  if (size > 1L && stride > 1L) { # "same" would pad only the end
    x <- layers$ZeroPadding2D(size %/% 2L)(x)
    padding <- "valid"
  }
  layers$Conv2D(channels, size, strides = stride, padding = padding, use_bias = FALSE, name = name)(x)
}

normalisation <- function(x, task, name) {
  # Keras always updates the running variance by the biased variance, (n - 1) / n of the Task's; n is at
  # least 392 at a batch of 8. Training does not use the running variance, so it computes the same
  layers$BatchNormalization(momentum = 1 - task$statistics, epsilon = task$epsilon, name = name)(x)
}

bottleneck <- function(x, task, name, inputs, width, stride) {
  part <- function(suffix) paste(name, suffix, sep = ".")
  outputs <- 4L * width
  shortcut <- x
  if (inputs != outputs) {
    shortcut <- convolution(shortcut, part("downsample.0"), outputs, 1L, stride)
    shortcut <- normalisation(shortcut, task, part("downsample.1"))
  }
  x <- layers$ReLU()(normalisation(convolution(x, part("conv1"), width, 1L, 1L), task, part("bn1")))
  x <- layers$ReLU()(normalisation(convolution(x, part("conv2"), width, 3L, stride), task, part("bn2")))
  x <- normalisation(convolution(x, part("conv3"), outputs, 1L, 1L), task, part("bn3"))
  layers$ReLU()(layers$Add()(list(x, shortcut)))
}

network <- function(task) {
  r_keras$set_policy(task)
  images <- keras$Input(tuple(task$image, task$image, 3L))
  x <- layers$ReLU()(normalisation(convolution(images, "conv1", 64L, 7L, 2L), task, "bn1"))
  x <- layers$ZeroPadding2D(1L)(x) # for the pool: after ReLU, zeros do not change a maximum
  x <- layers$MaxPooling2D(3L, strides = 2L, padding = "valid")(x) # (batch, 56, 56, 64)
  for (block in iterate(resnet50$blocks(), simplify = FALSE)) {
    x <- do.call(bottleneck, c(list(x, task), block)) # finally (batch, 7, 7, 2048)
  }
  x <- layers$GlobalAveragePooling2D(dtype = "float32", name = "features")(x) # (batch, 2048)
  keras$Model(images, layers$Dense(task$classes, dtype = "float32", name = "fc")(x)) # (batch, 1000)
}

load <- function(net, weights) {
  for (row in iterate(resnet50$convolutions(), simplify = FALSE)) {
    kernel <- aperm(weights[[paste0(row[[1L]], ".weight")]], c(3L, 4L, 2L, 1L)) # (height, width, in, out)
    net$get_layer(row[[1L]])$set_weights(list(kernel))
    parameters <- paste0(row[[2L]], c(".weight", ".bias", ".running_mean", ".running_var"))
    net$get_layer(row[[2L]])$set_weights(unname(weights[parameters]))
  }
  net$get_layer("fc")$set_weights(list(t(weights$fc.weight), weights$fc.bias))
  net
}

KINDS <- c(
  kernel = ".weight", gamma = ".weight", beta = ".bias", bias = ".bias",
  moving_mean = ".running_mean", moving_variance = ".running_var"
)

# Return the Task's name of each variable.
task_names <- function(variables) {
  paths <- lapply(variables, function(variable) tail(strsplit(variable$path, "/")[[1L]], 2L))
  vapply(paths, function(path) paste0(path[1L], KINDS[[path[2L]]]), "")
}

cross_entropy <- function() {
  keras$losses$SparseCategoricalCrossentropy(from_logits = TRUE, reduction = "sum_over_batch_size")
}

gradients <- function(net, task) {
  differentiate <- r_keras$make_gradient_function(net, cross_entropy())
  names <- task_names(net$trainable_variables)
  function(x, y) {
    computed <- differentiate(x, y)
    list(loss = computed[[1L]], gradients = setNames(computed[[2L]], names))
  }
}

training_step <- function(net, task) {
  optimiser <- keras$optimizers$SGD(
    task$learning_rate,
    momentum = task$momentum, nesterov = FALSE, weight_decay = NULL
  )
  r_keras$make_training_step(net, optimiser, cross_entropy())
}

inference_step <- function(net, task) r_keras$make_inference_step(net, net$get_layer("features")$output)

stored <- function(net) setNames(net$weights, task_names(net$weights))

neutral <- function(name, array) {
  switch(max(1L, length(dim(array))), array, t(array), NULL, aperm(array, c(4L, 3L, 1L, 2L)))
}
