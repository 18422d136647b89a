/** Command lines by which a choird that is root shows a program some of its files, in a mount namespace of its own, under another user. */

/** Binds "kind source target" triples below a fresh tmpfs that only this mount namespace sees, up to `--`. */
const BIND = [
  'set -e; base=$1; shift; mkdir -p "${base%/*}"',
  'mount -t tmpfs -o mode=0711,size=1m,nosuid,nodev choir "${base%/*}"; mkdir -m 0711 "$base"',
  'while [ "$1" != -- ]; do if [ "$1" = d ]; then mkdir "$base/$3"; else : >"$base/$3"; fi',
  'mount --bind "$2" "$base/$3"; shift 3; done; shift; exec "$@"'
].join("; ")

/** Root binds files and folders for a command in a mount namespace of its own, which may have further namespaces. */
export const boundChain = (
  base: string,
  places: ReadonlyArray<readonly [kind: "d" | "f", source: string, name: string]>,
  command: ReadonlyArray<string>,
  namespaces: ReadonlyArray<string> = []
): ReadonlyArray<string> => [
  "unshare",
  "--mount",
  ...namespaces,
  "--propagation",
  "private",
  "--",
  "sh",
  "-c",
  BIND,
  "sh",
  base,
  ...places.flat(),
  "--",
  ...command
]

/** A uid without any way back: no groups, no capabilities to inherit or to gain by a setuid program. */
export const asUid = (uid: number) => [
  `--reuid=${uid}`,
  `--regid=${uid}`,
  "--clear-groups",
  "--bounding-set=-all",
  "--inh-caps=-all",
  "--no-new-privs"
]
