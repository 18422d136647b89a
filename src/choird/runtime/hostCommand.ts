/** Commands that a program of the host is started by: in its control groups, and never without choird. */

/** Joins control groups, then becomes the rest. The files come first, after their count. */
const JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'

/** Ends if choird died before the kernel was told to kill this process with it. */
const GUARD = '[ "$PPID" = "$1" ] || exit 125; shift; exec "$@"'

/** A program that joins `joins` first. */
export const joining = (joins: ReadonlyArray<string>, command: ReadonlyArray<string>): ReadonlyArray<string> =>
  joins.length === 0 ? command : ["sh", "-c", JOIN, "sh", String(joins.length), ...joins, ...command]

/** A program that the kernel kills when `parent`, which must be the one that starts it, dies. */
export const dyingWith = (
  parent: number,
  command: ReadonlyArray<string>,
  privileges: ReadonlyArray<string> = []
): ReadonlyArray<string> => [
  "setpriv",
  ...privileges,
  "--pdeathsig=KILL",
  "--",
  "sh",
  "-c",
  GUARD,
  "sh",
  String(parent),
  ...command
]
