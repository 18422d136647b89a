/** Where a Docker engine of this host may listen. */
import { lstatSync } from "node:fs"

const UNIX = "unix://"

/**
 * Sockets to try, the first that exists wins. What config.json names is the only one; else DOCKER_HOST, when it is a Unix socket,
 * since containers mount folders of this host; else the system's engine, then the user's own.
 */
export const dockerSockets = (
  configured: string | undefined,
  env: Readonly<Record<string, string | undefined>>
): ReadonlyArray<string> => {
  if (configured !== undefined) return [configured]
  const { DOCKER_HOST = "", XDG_RUNTIME_DIR } = env
  if (DOCKER_HOST.startsWith(UNIX)) return [DOCKER_HOST.slice(UNIX.length)]
  return ["/var/run/docker.sock", ...(XDG_RUNTIME_DIR === undefined ? [] : [`${XDG_RUNTIME_DIR}/docker.sock`])]
}

/** The first of them that is there, a link to one included, or `undefined`. */
export const existingSocket = (paths: ReadonlyArray<string>): string | undefined =>
  paths.find((path) => lstatSync(path, { throwIfNoEntry: false }) !== undefined)
