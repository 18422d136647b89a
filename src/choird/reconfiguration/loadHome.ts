/** A home's configuration as one snapshot in memory: both files, and the repositories that they name (D42). */
import { Effect, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { LoadedRepo } from "#schema/ConfigApi.ts"
import { AgentId, type ResourceName } from "#schema/Ids.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import type { SourceState } from "#src/choird/images/ImageOrigin.ts"
import { contentsOf } from "#src/choird/repos/Tree.ts"
import { merge } from "#src/choird/repos/Merge.ts"
import { accessBy, type RepoAccess } from "#src/choird/repos/RepoAccess.ts"
import { type RepoError, type RepoOwner, Repos, type Snapshot } from "#src/choird/repos/Repos.ts"
import type { RepoSource } from "#src/choird/repos/RepoSource.ts"
import { capabilities } from "#src/choird/runtime/capabilities.ts"
import type { RuntimeStatus } from "#src/choird/runtime/ContainerRuntime.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import type { Problem } from "#src/shared/config/configProblems.ts"
import { fromConfigRefused, refuse } from "./ConfigurationRefused.ts"
import type { StagedRepos } from "./repoChanges.ts"

/** Repositories that `config load` fetches at once; each holds its files in memory meanwhile. */
export const REPO_LOADS_IN_FLIGHT_MAX = 4

/** The staged home. Nothing of it is read again, so that exactly the checked state is applied. */
export interface LoadedHome {
  readonly config: Config
  readonly secrets: SecretsFile
  readonly repos: StagedRepos
  readonly loaded: ReadonlyArray<LoadedRepo>
  readonly warnings: ReadonlyArray<string>
}

interface Fetched {
  readonly name: string
  readonly snapshot: Snapshot | undefined
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<string>
}

const problemsOfRepo = (name: string, key: string, error: RepoError): ReadonlyArray<Problem> =>
  error._tag === "BadRepository"
    ? error.problems.map(({ path, reason }) => ({ path: `${name}:${path}`, reason }))
    : [{ path: key, reason: error.message }]

/** A remote that does not answer is a warning, with or without an earlier clone; everything else about a repository is an error. */
const fetch = Effect.fnUntraced(function* (
  owner: RepoOwner,
  source: RepoSource,
  access?: RepoAccess
): Effect.fn.Return<Fetched, never, Repos> {
  const repos = yield* Repos
  const [name, key] = "global" in owner ? ["global", "global_repo"] : [owner.agent_id, `agents.${owner.agent_id}.repo`]
  const read = yield* Effect.result(repos.snapshot(owner, source, access === undefined ? {} : { access }))
  if (Result.isSuccess(read)) {
    const { warning } = read.success
    return { name, snapshot: read.success, problems: [], warnings: warning === undefined ? [] : [warning] }
  }
  const { failure } = read
  return failure._tag === "FetchFailed"
    ? { name, snapshot: undefined, problems: [], warnings: [`${name}: ${failure.message}. There is no earlier clone`] }
    : { name, snapshot: undefined, problems: problemsOfRepo(name, key, failure), warnings: [] }
})

/** The problems of an image of the two repositories. */
const merged = (
  global: Fetched,
  own: Fetched,
  runtime: RuntimeStatus["type"]
): Pick<Fetched, "problems" | "warnings"> => {
  if (global.snapshot === undefined || own.snapshot === undefined) return { problems: [], warnings: [] }
  const plan = merge(
    { label: global.name, files: global.snapshot.files },
    { label: own.name, files: own.snapshot.files },
    capabilities(runtime)
  )
  return Result.match(plan, {
    onSuccess: ({ warnings }) => ({ problems: [], warnings }),
    onFailure: ({ problems }) => ({
      problems: problems.map(({ path, reason, repo }) => ({ path: `${repo}:${path}`, reason })),
      warnings: []
    })
  })
}

const stateOf = ({ snapshot }: Fetched): SourceState | undefined =>
  snapshot === undefined ? undefined : { commit: snapshot.commit, contents: contentsOf(snapshot.files) }

const loadedRepo = ({ name, snapshot }: Fetched): LoadedRepo => ({
  repo: name,
  commit: snapshot?.commit ?? null,
  stale: snapshot?.stale ?? true
})

/** Two agents may report the same about the global repository. */
const once = <A>(all: ReadonlyArray<A>, key: (each: A) => string) => [
  ...new Map(all.map((each) => [key(each), each])).values()
]

/**
 * Reads and checks everything, and fails with every problem that was found. A repository's files are held only while they are
 * checked.
 *
 * @param found the runtime that `auto` has found on this host.
 * @param bound the git identities of agents that run.
 */
export const loadHome = Effect.fn("Reconfiguration.read")(function* (
  home: string,
  progress: (step: string) => Effect.Effect<void>,
  found: RuntimeStatus["type"],
  bound: ReadonlyMap<AgentId, ResourceName | undefined> = new Map()
) {
  yield* progress("read config.json and secrets.json")
  const { config, secrets, warnings } = yield* Effect.mapError(loadFiles(home), fromConfigRefused)
  const runtime = config.runtime.type === "auto" ? found : config.runtime.type
  const by = accessBy(config, secrets)
  const access: RepoAccess = (agent_id, source, identity) => Effect.succeed(by(agent_id, source, identity))
  yield* progress("fetch global")
  const global = yield* fetch({ global: true }, config.global_repo)
  const agents = yield* Effect.forEach(
    Object.entries(config.agents),
    Effect.fnUntraced(function* ([key, { repo }]) {
      const agent_id = AgentId.make(key)
      yield* progress(`fetch ${agent_id}`)
      const own = yield* fetch({ agent_id, git_identity: bound.get(agent_id) }, repo, access)
      const checked = merged(global, own, runtime)
      return {
        agent_id,
        state: stateOf(own),
        loaded: loadedRepo(own),
        problems: [...own.problems, ...checked.problems],
        warnings: [...own.warnings, ...checked.warnings]
      }
    }),
    { concurrency: REPO_LOADS_IN_FLIGHT_MAX }
  )
  const problems = once(
    [...global.problems, ...agents.flatMap((agent) => agent.problems)],
    ({ path, reason }) => `${path} ${reason}`
  )
  if (problems.length > 0)
    return yield* refuse(
      "CONFIG",
      "a repository cannot be used",
      "correct it, commit, then choirctl config load",
      problems
    )
  const said = [
    ...warnings.map(({ message, path }) => `${path}: ${message}`),
    ...global.warnings,
    ...agents.flatMap((agent) => agent.warnings)
  ]
  return {
    config,
    secrets,
    repos: {
      global: stateOf(global),
      agents: new Map(agents.flatMap(({ agent_id, state }) => (state === undefined ? [] : [[agent_id, state]])))
    },
    loaded: [loadedRepo(global), ...agents.map(({ loaded }) => loaded)],
    warnings: once(said, (text) => text)
  } satisfies LoadedHome
})
