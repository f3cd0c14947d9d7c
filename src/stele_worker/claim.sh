# Start a worker whose language cannot move file descriptors: sh stele_worker/claim.sh PROGRAM ARGUMENT...
#
# The streams are claimed before the program is there to print: what is standard input and output for the host is
# 3 and 4 for the program, whatever else prints gets the log, and what else reads, nothing. Each exec keeps the
# process's number, so that the host's signals reach the program itself.
exec 3<&0 4>&1 0</dev/null 1>&2
exec "$@"
