/** The remotes that may get a git identity's credentials (D14): those that config.json lists, and no other. Pure. */
import type { GitRemote } from "#schema/GitIdentity.ts"
import { portOf } from "#src/shared/wire/hostPort.ts"

type Remotes = ReadonlyArray<GitRemote> | undefined

/** An address as git names it; `path` begins with `/`. */
interface HttpsAddress {
  readonly host: string
  readonly path: string
}

/** Where an ssh url leads. */
export interface SshAddress {
  readonly host: string
  readonly port: string
  readonly user: string
}

/** Whole segments, as they are written: what a server makes of dots and escapes is not to be guessed. */
const isBelow = (prefix: string, path: string) => {
  if (/(?:^|\/)\.{1,2}(?:\/|$)|\/\/|[%\\?#]/u.test(path)) return false
  const folder = prefix.endsWith("/") ? prefix : `${prefix}/`
  return path === prefix || path.startsWith(folder)
}

export const coversHttps = (remotes: Remotes, { host, path }: HttpsAddress): boolean =>
  (remotes ?? []).some((remote) => {
    const url = new URL(remote)
    // A port that is the scheme's own is left out by URL, and may be written by git.
    return (
      url.protocol === "https:" &&
      (url.host === host || `${url.hostname}:${portOf(url)}` === host) &&
      isBelow(url.pathname, path)
    )
  })

const SCP = /^(?:(?<user>[^@/:]+)@)?(?<host>\[[^\]]+\]|[^:/@]+):/u

/** The address of an ssh url, or of `user@host:path`. */
export const sshAddress = (url: string): SshAddress | undefined => {
  if (url.startsWith("ssh://")) {
    const { hostname, port, username } = new URL(url)
    return { host: hostname, port: port === "" ? "22" : port, user: username }
  }
  const { host, user = "" } = SCP.exec(url)?.groups ?? {}
  return host === undefined ? undefined : { host, port: "22", user }
}

/** A remote that names no user, and a url that names none, are of any. */
export const coversSsh = (remotes: Remotes, { host, port, user }: SshAddress): boolean =>
  (remotes ?? []).some((remote) => {
    const allowed = remote.startsWith("ssh:") ? sshAddress(remote) : undefined
    return (
      allowed !== undefined &&
      allowed.host.toLowerCase() === host.toLowerCase() &&
      allowed.port === port &&
      (allowed.user === "" || user === "" || allowed.user === user)
    )
  })
