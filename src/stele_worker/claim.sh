# shellcheck shell=sh
# Start a worker in a language that cannot move file descriptors: sh stele_worker/claim.sh PROGRAM ARGUMENT...
#
# The host's standard input and output become descriptors 3 and 4 of the program, before the program can print.
# Other output of the program goes to the log; other input is empty. exec keeps the process id, so that the host's
# signals reach the program.
exec 3<&0 4>&1 0</dev/null 1>&2
exec "$@"
