/** Calls of git: on a repository of choird's own, and over the one transport that leads to the other side. */
import { Effect, FileSystem, Schema } from "effect"
import { GIT_WRITTEN_BYTES_MAX, type GitCall, runGit } from "#src/shared/git/git.ts"
import type { CheckedSource } from "./RepoSource.ts"

/** A repository that could not be fetched. `url` never holds credentials: they are refused in config.json. */
export class FetchFailed extends Schema.TaggedError<FetchFailed>()("FetchFailed", {
  url: Schema.String,
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `cannot fetch ${this.url}: ${this.reason}. ${this.hint}`
  }
}

/** A repository that answers but has no such branch, tag or commit. */
export class RefNotFound extends Schema.TaggedError<RefNotFound>()("RefNotFound", {
  url: Schema.String,
  ref: Schema.String
}) {
  override get message() {
    return `${this.url} has no branch, tag or commit ${this.ref}: push it, or correct the ref in config.json`
  }
}

/** Calls git with the credentials of a source and no transport but its own. */
export const callRemote = Effect.fn("git.remote")(
  function* (source: CheckedSource, call: GitCall) {
    if (source.transport !== "file")
      return yield* runGit({ ...call, transport: source.transport, ...(yield* credentialOf(source)) })
    const fs = yield* FileSystem.FileSystem
    const globalConfig = yield* fs.makeTempFileScoped({ prefix: "choir-git-" })
    yield* fs.writeFileString(globalConfig, safeFolder(source.url))
    return yield* runGit({ ...call, transport: "file", globalConfig })
  },
  Effect.scoped,
  (effect, source) =>
    Effect.catchTags(effect, {
      GitFailed: (error) => Effect.fail(fetchFailed(source, error.reason)),
      PlatformError: (error) => Effect.fail(fetchFailed(source, error.message))
    })
)

const credentialOf = Effect.fnUntraced(function* ({ credential }: CheckedSource) {
  if (credential === undefined) return {}
  if (credential.type === "password" || credential.known_hosts === undefined) return { credential }
  const fs = yield* FileSystem.FileSystem
  const knownHosts = yield* fs.makeTempFileScoped({ prefix: "choir-hosts-" })
  yield* fs.writeFileString(knownHosts, `${credential.known_hosts.join("\n")}\n`)
  return { credential, knownHosts }
})

/** The arguments of a fetch of the objects of the refs that it names, this many commits deep, and of nothing else. */
export const fetchArgs = (depth: number): ReadonlyArray<string> => [
  "fetch",
  "--quiet",
  `--depth=${depth}`,
  "--no-tags",
  "--no-recurse-submodules",
  "--no-write-fetch-head",
  "--no-auto-maintenance"
]

/** `git-upload-pack` takes this setting from a file only. A repository may be the folder itself or its `.git`. */
const safeFolder = (path: string) => {
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/gu, String.raw`\$&`)}"`
  const folder = path.replace(/\/+$/u, "")
  return `[safe]\n\tdirectory = ${quoted(folder)}\n\tdirectory = ${quoted(`${folder}/.git`)}\n`
}

/** Messages of git, and the advice for each. */
const HINTS: ReadonlyArray<readonly [RegExp, string]> = [
  [/did not finish within/iu, "The server is slow or does not answer: check the network and try again"],
  [
    /host key verification/iu,
    "Add the host's key to known_hosts of the agent's git identity, or connect once by hand as the user that runs choird"
  ],
  [
    /permission denied|authentication|could not read username/iu,
    "Check the secret and the remotes of the agent's git identity, or the key of the user that runs choird, and its rights"
  ],
  [/resolve host|connect|network|timed out/iu, "Check the network and the host name"],
  [/dubious ownership/iu, "Give the folder to the user that runs choird"],
  [
    /fsck|bad object|hasDot|zero-padded/iu,
    "The repository holds objects that git itself calls broken: repair it with git fsck"
  ],
  [
    /index-pack/iu,
    `With its history it may be larger than the limit of ${GIT_WRITTEN_BYTES_MAX / 1024 / 1024} MiB, or the disk is full: remove large files from its history`
  ]
]

const fetchFailed = ({ url }: CheckedSource, reason: string) =>
  new FetchFailed({
    url,
    reason,
    hint: HINTS.find(([words]) => words.test(reason))?.[1] ?? "Check the url and that it is a git repository"
  })
