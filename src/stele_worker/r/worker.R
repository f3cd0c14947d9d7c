# The serve loop in R: read a request, do it, answer. The only place that catches everything.
# Started by claim.sh; the protocol is described in docs/protocol.md.

PACKAGE <- normalizePath("stele_worker")
modules <- new.env()

# The environment that a file of this package fills, made once: what an import is in Python.
module <- function(path) {
  if (is.null(modules[[path]])) {
    made <- new.env(parent = globalenv())
    sys.source(file.path(PACKAGE, path), made)
    assign(path, made, modules)
  }
  modules[[path]]
}

main <- function() {
  requests <- file("/dev/fd/3", "r", raw = TRUE)  # raw: a pipe, to be read as it comes
  answers <- file("/dev/fd/4", "a", raw = TRUE)
  while (length(line <- readLines(requests, n = 1L, warn = FALSE, encoding = "UTF-8"))) {
    answer(line, requests, answers)
  }
}

# One request: its progress, then its result or its error.
answer <- function(line, requests, answers) {
  missing <- lacking(c("jsonlite", "reticulate"))
  if (length(missing)) {
    return(say(refusal(line, missing), answers))
  }
  number <- calls <- NULL
  depth <- 0L
  send <- function(kind, value) {
    message <- c(list(id = number), stats::setNames(list(value), kind))
    say(jsonlite::toJSON(message, auto_unbox = TRUE, digits = NA, null = "null", na = "null"), answers)
  }
  host <- list(
    tell = function(...) send("progress", list(...)), # report progress
    pause = function(done) { # wait, while another worker has its turn, until the host says to go on
      send("pause", list(done = done))
      said <- readLines(requests, n = 1L, warn = FALSE, encoding = "UTF-8")
      if (!length(said)) {
        quit(status = 1L) # the host is gone
      }
      if (!isTRUE(decode(said)[["go"]])) {
        stop("in a pause only 'go' can be asked for, not ", substr(said, 1L, 80L))
      }
    }
  )
  fail <- function(condition) send("error", described(condition, calls))
  carry_out <- function() {
    depth <<- sys.nframe()
    request <- decode(line)
    number <<- request[["id"]]
    request[["id"]] <- NULL
    verbs <- module("r/verbs.R") # not before: Python may print, or not be there
    send("result", verbs$do(request, host))
  }
  noting <- function(condition) calls <<- utils::head(sys.calls(), -1L)[-seq_len(depth)]
  tryCatch(
    withCallingHandlers(carry_out(), error = noting, interrupt = noting),
    error = fail, interrupt = fail
  )
}

say <- function(text, answers) {
  writeLines(text, answers, useBytes = TRUE)
  flush(answers)
}

# The request in a line of text. parse_json and not fromJSON, which would open a file or an address of that name.
decode <- function(line) {
  request <- jsonlite::parse_json(line, simplifyVector = FALSE)
  if (!is.list(request) || is.null(names(request))) {
    stop("not a JSON object: ", substr(line, 1L, 80L))
  }
  request
}

# An error as data. An exception of Python's keeps its own name and traceback, behind R's calls.
described <- function(condition, calls) {
  described <- list(type = class(condition)[1L], message = conditionMessage(condition))
  trace <- vapply(calls, function(call) substr(deparse(call, nlines = 1L)[1L], 1L, 100L), "")
  python <- if (inherits(condition, c("Rcpp::exception", "python.builtin.BaseException"))) reticulate::py_last_error()
  if (!is.null(python)) {
    described <- list(type = python$type, message = python$value)
    trace <- c(trace, python$traceback)
  }
  if (is.null(described$message) || !nzchar(described$message)) {
    described$message <- described$type # an interrupt says nothing
  }
  c(described, traceback = paste(trimws(trace, "right"), collapse = "\n"))
}

lacking <- function(packages) {
  Filter(function(package) !requireNamespace(package, quietly = TRUE), packages)
}

# The answer while packages are missing, jsonlite perhaps among them, written by hand.
refusal <- function(line, missing) {
  number <- regmatches(line, regexec("\"id\": *([0-9]+)", line))[[1L]][2L]
  advice <- paste0(
    "R has no ", paste(missing, collapse = " and no "), ": install Debian's ",
    paste0("r-cran-", missing, collapse = " and "), ", or from R: ",
    paste0("install.packages('", missing, "')", collapse = "; ")
  )
  error <- sprintf("{\"type\":\"packageNotFoundError\",\"message\":\"%s\",\"traceback\":\"\"}", advice)
  sprintf("{\"id\":%s,\"error\":%s}", if (is.na(number)) "null" else number, error)
}

main()
