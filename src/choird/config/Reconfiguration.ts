/**
 * Changes what choird runs with, in two phases: load reads and checks everything and stages it, apply takes over what needs no
 * restart (spec 16.3, 17.6, 17.7). What is staged lives in memory and stays until nothing of it is left to be done.
 */
import { Context, Effect, Layer, Option, Ref, Result, Schema, Semaphore } from "effect"
import { Config } from "#schema/Config.ts"
import type { ApplyReport, ConfigChange, LoadReport, SecretReport, VersionSummary } from "#schema/ConfigApi.ts"
import { AgentId } from "#schema/Ids.ts"
import { Images } from "#src/choird/agents/Images.ts"
import { type AgentView, Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { AgentSchemas } from "#src/choird/database/AgentSchemas.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { Signals } from "#src/choird/sessions/Signals.ts"
import { loadSecrets } from "#src/shared/configFiles.ts"
import { problemsOf } from "#src/shared/configProblems.ts"
import { boundSecrets } from "./agentShare.ts"
import { appliedConfig } from "./appliedConfig.ts"
import { ConfigStore, type RunningConfig } from "./ConfigStore.ts"
import { type ConfigurationRefused, fromConfigRefused, refuse } from "./ConfigurationRefused.ts"
import { ConfigVersions, type VersionEntry } from "./ConfigVersions.ts"
import { keepLastGood } from "./LastGood.ts"
import { type LoadedHome, loadHome } from "./loadHome.ts"
import { differences } from "./differences.ts"
import { configChanges } from "./reloadClasses.ts"
import { repoChanges } from "./repoChanges.ts"
import type { AgentUse } from "./resourcesInUse.ts"
import { changedSecrets, secretRows } from "./secretChanges.ts"

type Doing<A> = Effect.Effect<A, ConfigurationRefused>

/** Loads, compares and applies configurations, one at a time; `who` is for the audit. */
export class Reconfiguration extends Context.Service<
  Reconfiguration,
  {
    /** Reads the home and stages it. When anything is wrong nothing is staged, and what was staged before stays. */
    load(who: string, progress: (step: string) => Effect.Effect<void>): Doing<LoadReport>
    /** What is staged and does not run yet, and what running agents have not taken over since their start. */
    readonly diff: Effect.Effect<ReadonlyArray<ConfigChange>>
    /** Takes over what needs no restart: one row, one swap, then the agents are told. The rest stays staged. */
    apply(who: string): Doing<ApplyReport>
    /** Applies what an earlier version held, under a new number; config.json stays as it is. */
    rollback(who: string, version: number): Doing<ApplyReport>
    /** Reads secrets.json again, with the checks of choird's start, and makes the agents fetch (R34, R35). */
    applySecrets(who: string): Doing<SecretReport>
    readonly history: Effect.Effect<ReadonlyArray<VersionSummary>>
    /** What a version held. */
    version(version: number): Doing<Config>
  }
>()("choir/choird/Reconfiguration") {
  static readonly layer = Layer.effect(
    Reconfiguration,
    Effect.suspend(() => make())
  )
}

/** What is to run. After a rollback there are no repositories and secrets to compare with. */
type Staged = Pick<LoadedHome, "config"> & Partial<Pick<LoadedHome, "repos" | "secrets">>

const services = Effect.gen(function* () {
  return {
    audit: yield* Audit,
    images: yield* Images,
    lifecycle: yield* Lifecycle,
    repos: yield* Repos,
    schemas: yield* AgentSchemas,
    signals: yield* Signals,
    store: yield* ConfigStore,
    versions: yield* ConfigVersions
  }
})
type Services = Effect.Success<typeof services>

const isUp = ({ status }: AgentView) => status !== "stopped" && status !== "crashed"

const usesOf = (running: Config, views: ReadonlyArray<AgentView>): ReadonlyArray<AgentUse> =>
  views.flatMap((view) =>
    isUp(view) && view.bindings !== null
      ? [{ agent_id: view.agent_id, bindings: view.bindings, started_with: view.started_with ?? running }]
      : []
  )

/** The images of every agent that is to be there. */
const imagesOf = ({ images, lifecycle }: Services, { agents }: Config) =>
  Effect.flatMap(lifecycle.list, (views) =>
    Effect.forEach(
      Object.keys(agents).map((id) => AgentId.make(id)),
      Effect.fnUntraced(function* (agent_id) {
        const view = views.find((view) => view.agent_id === agent_id)
        const newest = Option.getOrUndefined(yield* images.origin(agent_id))
        if (view === undefined || !isUp(view) || view.image_version === null)
          return { agent_id, running: false, mounted: undefined, newest }
        const mounted = Option.getOrUndefined(yield* images.origin(agent_id, view.image_version))
        return { agent_id, running: true, mounted, newest }
      })
    )
  )

/** Everything that `staged` changes; without it, what the agents' starts left behind. */
const changesOf = Effect.fnUntraced(function* (services: Services, staged: Staged | undefined) {
  const { config: running } = yield* services.store.current
  const target = staged?.config ?? running
  const uses = usesOf(running, yield* services.lifecycle.list)
  const secrets =
    staged?.secrets === undefined
      ? []
      : secretRows(running, changedSecrets(yield* services.store.secrets, staged.secrets))
  const images = staged?.repos === undefined ? [] : repoChanges(staged.repos, yield* imagesOf(services, staged.config))
  return [...configChanges(running, target, uses), ...secrets, ...images]
})

/** Agents whose next refresh would find a secret without a value would never take the configuration over. */
const checkSecrets = Effect.fnUntraced(function* ({ store }: Services, config: Config, uses: ReadonlyArray<AgentUse>) {
  for (const { agent_id, bindings } of uses) {
    const values = yield* Effect.result(store.secretValues(boundSecrets(config, bindings)))
    if (Result.isFailure(values)) {
      const { hint, message } = values.failure
      return yield* refuse("NOT_READY", `${agent_id} runs and could not take it over: ${message}`, hint)
    }
  }
})

/** Decides what can run beside the agents that run, and has the database ready for new ones; nothing when it runs already. */
const nextConfig = Effect.fnUntraced(function* (
  services: Services,
  target: Config,
  always: boolean,
  { config: running }: RunningConfig
) {
  const uses = usesOf(running, yield* services.lifecycle.list)
  const mixed = appliedConfig(running, target, uses)
  if (Result.isFailure(mixed))
    return yield* refuse(
      "NOT_READY",
      "what running agents hold on to does not go together with the staged configuration",
      `choirctl agent stop ${uses.map(({ agent_id }) => agent_id).join(" && choirctl agent stop ")} && choirctl config apply`,
      problemsOf([mixed.failure])
    )
  const config = mixed.success
  if (!always && differences(running, config).length === 0) return undefined
  yield* checkSecrets(services, config, uses)
  for (const id of Object.keys(config.agents)) {
    if (!Object.hasOwn(running.agents, id)) yield* Effect.orDie(services.schemas.ensure(AgentId.make(id)))
  }
  return { config }
})

/** Heartbeats would tell the agents as well; this tells them now. */
const tellAgents = Effect.fnUntraced(function* ({ lifecycle, signals }: Services, version: number) {
  for (const view of yield* lifecycle.list) {
    if (view.session_id !== null && isUp(view)) yield* signals.configChanged(view.session_id, version)
  }
})

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

const make = Effect.fnUntraced(function* () {
  const all = yield* services
  const { audit, repos, store, versions } = all
  const one = yield* Semaphore.make(1)
  const staged = yield* Ref.make<Staged | undefined>(undefined)

  /** One at a time, so that nothing is applied while it is being loaded; whoever comes second is told so at once. */
  const alone = <A>(doing: Doing<A>): Doing<A> =>
    Effect.flatMap(one.withPermitsIfAvailable(1)(doing), (done) =>
      Effect.mapError(Effect.fromOption(done), () =>
        refuse("BUSY", "another load, apply or rollback is under way", "try again when it has ended")
      )
    )

  const audited = <A>(
    who: string,
    action: string,
    doing: Doing<A>,
    detail: (done: A) => AuditEntry["detail"]
  ): Doing<A> =>
    doing.pipe(
      Effect.tap((done) => audit.record({ who, action, detail: detail(done) })),
      Effect.tapError(({ kind, problems }) =>
        audit.record({ who, action, detail: { refused: kind, paths: problems.map(({ path }) => path) } })
      )
    )

  /** What is left of a staged configuration; it is forgotten when nothing is. */
  const left = Effect.fnUntraced(function* (target: Staged) {
    const rows = yield* changesOf(all, target)
    yield* Ref.set(staged, rows.length === 0 ? undefined : target)
    return rows
  })

  const takeOver = Effect.fnUntraced(function* (entry: VersionEntry, target: Staged, always: boolean) {
    const before = yield* changesOf(all, target)
    const { version: previous } = yield* store.current
    const version = yield* versions.commit(entry, (running) => nextConfig(all, target.config, always, running))
    if (version !== previous) {
      yield* keepLastGood(store.home, (yield* store.current).config)
      yield* tellAgents(all, version)
    }
    const after = yield* left(target)
    const waiting = new Set(after.map(({ path }) => path))
    const gone = before.filter(({ path }) => !waiting.has(path))
    // choird takes over where repositories are, which does nothing before a build.
    const pending = [...after, ...gone.filter((row) => row.class === "restart-required")]
    const applied = gone.filter((row) => row.class === "hot-reload")
    return { version, previous, applied, pending } satisfies ApplyReport
  })

  const contentOf = Effect.fnUntraced(function* (version: number) {
    const stored = yield* versions.content(version)
    if (Option.isNone(stored))
      return yield* refuse("NO_SUCH_VERSION", `there is no version ${version}`, "choirctl config history")
    const decoded = decode(stored.value)
    if (Result.isSuccess(decoded)) return decoded.success
    const hint = "choose another one: choirctl config history"
    return yield* refuse(
      "CONFIG",
      `version ${version} is not valid in this Choir`,
      hint,
      problemsOf([decoded.failure.message])
    )
  })

  const load = Effect.fnUntraced(function* (progress: (step: string) => Effect.Effect<void>) {
    const home = yield* loadHome(repos, store.home, progress)
    const { loaded, warnings, ...target } = home
    yield* Ref.set(staged, target)
    return { changes: yield* changesOf(all, target), repos: loaded, warnings } satisfies LoadReport
  })

  const apply = Effect.fnUntraced(function* (who: string) {
    const target = yield* Ref.get(staged)
    if (target === undefined) return yield* refuse("NOTHING_STAGED", "nothing is staged", "choirctl config load")
    return yield* takeOver({ action: "apply", who }, target, false)
  })

  const applySecrets = Effect.fnUntraced(function* (who: string) {
    const secrets = yield* Effect.mapError(loadSecrets(store.home), fromConfigRefused)
    const changed = changedSecrets(yield* store.secrets, secrets)
    const version = yield* versions.commit({ action: "secret apply", who }, () => Effect.succeed({ secrets }))
    yield* Ref.update(staged, (target) => (target?.secrets === undefined ? target : { ...target, secrets }))
    yield* tellAgents(all, version)
    const { config } = yield* store.current
    const pending = secretRows(config, changed).filter((row) => row.class === "restart-required")
    return { version, changed, pending } satisfies SecretReport
  })

  const numbers = ({ applied, pending, previous, version }: ApplyReport) => ({
    version,
    previous,
    applied: applied.map(({ path }) => path),
    pending: pending.map(({ path }) => path)
  })
  return Reconfiguration.of({
    load: Effect.fn("Reconfiguration.load")((who, progress) =>
      audited(who, "config.load", alone(load(progress)), ({ changes, repos }) => ({ changes: changes.length, repos }))
    ),
    diff: Effect.flatMap(Ref.get(staged), (target) => changesOf(all, target)),
    // What has a row is finished: told to the agents, kept as the last good one and audited, whether or not somebody still waits.
    apply: Effect.fn("Reconfiguration.apply")((who) =>
      Effect.uninterruptible(audited(who, "config.apply", alone(apply(who)), numbers))
    ),
    rollback: Effect.fn("Reconfiguration.rollback")((who, version) => {
      const back = Effect.flatMap(contentOf(version), (config) =>
        takeOver({ action: "rollback", who }, { config }, true)
      )
      const doing = audited(who, "config.rollback", alone(back), (done) => ({ to: version, ...numbers(done) }))
      return Effect.uninterruptible(doing)
    }),
    applySecrets: Effect.fn("Reconfiguration.applySecrets")((who) =>
      Effect.uninterruptible(
        audited(who, "secret.apply", alone(applySecrets(who)), ({ changed, version }) => ({
          version,
          names: changed.map(({ name }) => name)
        }))
      )
    ),
    history: versions.history,
    version: Effect.fn("Reconfiguration.version")(contentOf)
  })
})
