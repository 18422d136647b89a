/** A git identity, tried by one question to a server that it has credentials for. */
import { Effect, FileSystem, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import { AgentId, type ResourceName } from "#schema/Ids.ts"
import type { Tried } from "#schema/SystemApi.ts"
import { Git } from "#src/choird/repos/Git.ts"
import { RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { checkSource, type CheckedSource } from "#src/choird/repos/RepoSource.ts"
import { tried } from "./tried.ts"

/** One question to a git server. */
const GIT_TRY_MS_MAX = 30_000
/** Characters of git's words in a line. */
const GIT_WORDS_CHARS_MAX = 200

/** Words of git that mean that a server has not taken the credentials, or was not reached. */
const NOT_TAKEN =
  /permission denied|access denied|authentication|could not read (?:username|password)|host key|resolve host|connect to|connection|network is|timed out|did not finish|certificate/iu

/** The addresses that an identity is tried at: the repositories of its agents, then its remotes, below which any repository will do. */
const placesOf = (name: ResourceName, { agents, git_identities }: Config) => {
  const own = Object.values(agents).filter(({ defaults }) => defaults.git_identity === name)
  const remotes = git_identities[name]?.remotes ?? []
  return [
    ...own.map(({ repo }) => ({ url: repo.url, isRepo: true })),
    ...remotes.map((remote) => ({
      url: /:\/\/[^/]+\/./u.test(remote) ? remote : `${remote.replace(/\/$/u, "")}/choir`,
      isRepo: false
    }))
  ]
}

interface Problem {
  readonly words: string
  readonly fix: string
}

/** Makes what tries an identity of a configuration. */
export const makeIdentityTry = Effect.gen(function* () {
  const git = yield* Git
  const access = yield* RepoAccess
  const fs = yield* FileSystem.FileSystem

  const sourceOf = Effect.fnUntraced(function* (name: ResourceName, config: Config) {
    for (const { isRepo, url } of placesOf(name, config)) {
      const checked = checkSource({ url, ref: "HEAD" })
      if (Result.isFailure(checked)) continue
      const source = yield* access(AgentId.make("doctor"), checked.success, name)
      if (source.credential !== undefined) return { isRepo, source }
    }
    return undefined
  })

  /** Why the branches of a repository cannot be listed, or `undefined`. */
  const ask = Effect.fnUntraced(
    function* (source: CheckedSource) {
      const folder = yield* fs.makeTempDirectoryScoped({ prefix: "choir-doctor-" })
      yield* git.init(folder)
      yield* git.lookup(folder, source)
      return undefined
    },
    Effect.scoped,
    Effect.catchTags({
      // The server lists its branches to those alone whom it has let in.
      RefNotFound: () => Effect.undefined,
      FetchFailed: ({ hint, reason }) => Effect.succeed<Problem>({ words: reason, fix: hint }),
      GitFailed: ({ message }) =>
        Effect.succeed<Problem>({ words: message, fix: "choirctl doctor shows whether git works" }),
      GitMissing: ({ message }) => Effect.succeed<Problem>({ words: message, fix: "install git" }),
      PlatformError: ({ message }) =>
        Effect.succeed<Problem>({ words: message, fix: "Check the folder for temporary files" })
    }),
    Effect.timeoutOrElse({
      duration: GIT_TRY_MS_MAX,
      orElse: () => Effect.succeed<Problem>({ words: "timed out", fix: "Check the network and try again" })
    })
  )

  return Effect.fnUntraced(function* (name: ResourceName, config: Config): Effect.fn.Return<Tried> {
    const title = `git ${name}`
    const identity = config.git_identities[name]
    if (identity === undefined || (identity.remotes ?? []).length === 0)
      return tried(title, "skip", "the identity has no remotes, so nothing gets its secret")
    const found = yield* sourceOf(name, config)
    const { secret } = identity
    if (found === undefined)
      return tried(title, "fail", "its secret has no value that fits its remotes", `choirctl secret set ${secret}`)
    const { isRepo, source } = found
    const problem = yield* ask(source)
    if (problem === undefined) return tried(title, "ok", `${source.url} can be read; nothing was fetched or pushed`)
    const words = problem.words.replaceAll(/\s+/gu, " ").slice(0, GIT_WORDS_CHARS_MAX)
    return !isRepo && !NOT_TAKEN.test(words)
      ? tried(title, "ok", `the server at ${source.url} answers; no repository is there to try`)
      : tried(title, "fail", `${source.url}: ${words}`, problem.fix)
  })
})
