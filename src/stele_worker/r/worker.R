# The serve loop in R: read a request, carry it out, answer. Only this file catches every error.
# claim.sh starts it; docs/protocol.md describes the protocol.

FOLDER <- normalizePath(".")
modules <- new.env()

# Return the environment filled by a file of Stele; each file is read once, as with a Python import.
module <- function(path) {
  if (is.null(modules[[path]])) {
    contents <- new.env(parent = globalenv())
    sys.source(file.path(FOLDER, path), contents)
    assign(path, contents, modules)
  }
  modules[[path]]
}

# R delivers an interrupt only where stop_if_interrupted() is called: inside a call of reticulate it damages R's memory.
main <- function() {
  requests <- file("/dev/fd/3", "r", raw = TRUE)  # raw: read a pipe without buffering
  answers <- file("/dev/fd/4", "a", raw = TRUE)
  suspendInterrupts({
    while (length(line <- readLines(requests, n = 1L, warn = FALSE, encoding = "UTF-8"))) {
      answer(line, requests, answers)
    }
  })
}

stop_if_interrupted <- function() allowInterrupts(Sys.sleep(0))

# Carry out one request and send its progress, then its result or its error.
answer <- function(line, requests, answers) {
  missing <- missing_packages(c("jsonlite", "reticulate"))
  if (length(missing)) {
    return(write_line(missing_packages_error(line, missing), answers))
  }
  number <- calls <- NULL
  depth <- 0L
  send <- function(kind, value) {
    message <- c(list(id = number), stats::setNames(list(value), kind))
    write_line(jsonlite::toJSON(message, auto_unbox = TRUE, digits = NA, null = "null", na = "null"), answers)
  }
  host <- list(
    report = function(...) send("progress", list(...)),
    pause = function(done) { # wait until the host says to continue
      send("pause", list(done = done))
      reply <- allowInterrupts(readLines(requests, n = 1L, warn = FALSE, encoding = "UTF-8"))
      if (!length(reply)) {
        quit(status = 1L) # the host closed standard input
      }
      if (!isTRUE(decode(reply)[["go"]])) {
        stop("expected 'go' during a pause, got ", substr(reply, 1L, 80L))
      }
    }
  )
  fail <- function(condition) send("error", describe_error(condition, calls))
  carry_out <- function() {
    depth <<- sys.nframe()
    request <- decode(line)
    number <<- request[["id"]]
    request[["id"]] <- NULL
    verbs <- module("stele_worker/r/verbs.R") # loaded only now, because Python may print or be missing
    result <- verbs$do(request, host)
    stop_if_interrupted()
    send("result", result)
  }
  record_calls <- function(condition) calls <<- utils::head(sys.calls(), -1L)[-seq_len(depth)]
  tryCatch(
    withCallingHandlers(carry_out(), error = record_calls, interrupt = record_calls),
    error = fail, interrupt = fail
  )
}

write_line <- function(text, answers) {
  writeLines(text, answers, useBytes = TRUE)
  flush(answers)
}

# Return the message in a line of text. fromJSON would open a file or a URL of that name; parse_json does not.
decode <- function(line) {
  request <- jsonlite::parse_json(line, simplifyVector = FALSE)
  if (!is.list(request) || is.null(names(request))) {
    stop("not a JSON object: ", substr(line, 1L, 80L))
  }
  request
}

# Return an error as data. A Python exception keeps its name and traceback, which follows R's calls.
describe_error <- function(condition, calls) {
  description <- list(type = class(condition)[1L], message = conditionMessage(condition))
  trace <- vapply(calls, function(call) substr(deparse(call, nlines = 1L)[1L], 1L, 100L), "")
  python <- if (inherits(condition, c("Rcpp::exception", "python.builtin.BaseException"))) reticulate::py_last_error()
  if (!is.null(python)) {
    description <- list(type = python$type, message = python$value)
    trace <- c(trace, python$traceback)
  }
  if (is.null(description$message) || !nzchar(description$message)) {
    description$message <- description$type # an interrupt has no message
  }
  c(description, traceback = paste(trimws(trace, "right"), collapse = "\n"))
}

missing_packages <- function(packages) {
  Filter(function(package) !requireNamespace(package, quietly = TRUE), packages)
}

# Return the answer when packages are missing. It is built without jsonlite, which may be one of them.
missing_packages_error <- function(line, missing) {
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
