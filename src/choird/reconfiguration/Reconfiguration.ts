/**
 * Changes of the running configuration, in two phases: load reads, checks and stages everything; apply puts into effect what needs no restart.
 * The staged configuration stays in memory until all of it is done.
 */
import { Context, Effect, FileSystem, Layer, Option, Ref, Result, Schema, Semaphore } from "effect"
import { Config } from "#schema/Config.ts"
import type {
  ApplyReport,
  ConfigChange,
  ConfigPlan,
  LoadReport,
  SecretReport,
  VersionSummary
} from "#schema/ConfigApi.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { newServers } from "#src/shared/config/secretServers.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { loadSecrets } from "#src/shared/config/configFiles.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type ConfigurationRefused, fromConfigRefused, refuse } from "./ConfigurationRefused.ts"
import { ConfigVersions, type VersionEntry } from "#src/choird/config/ConfigVersions.ts"
import { keepLastGood } from "./LastGood.ts"
import { loadHome } from "./loadHome.ts"
import { makeNextConfig } from "./nextConfig.ts"
import { changedSecrets, secretRows } from "./secretChanges.ts"
import { makePlans } from "./Plans.ts"
import { onceApplied } from "./reloadClasses.ts"
import { makeStagedChanges, type Staged } from "./stagedChanges.ts"

type Doing<A> = Effect.Effect<A, ConfigurationRefused>

/** Loads, compares and applies configurations, one at a time; `who` is for the audit. */
export class Reconfiguration extends Context.Service<
  Reconfiguration,
  {
    /** Reads the home and stages it. If anything is wrong nothing is staged, and an earlier staged configuration stays. */
    load(who: string, progress: (step: string) => Effect.Effect<void>): Doing<LoadReport>
    /** The changes that are staged and do not run yet, and those that running agents have not adopted since their start. */
    readonly diff: Effect.Effect<ReadonlyArray<ConfigChange>>
    /** Puts into effect what needs no restart: one row, one swap. The rest stays staged. */
    apply(who: string): Doing<ApplyReport>
    /** The staged changes, for an operator to read before they are applied. A later load or rollback makes this plan invalid. */
    readonly plan: Doing<ConfigPlan>
    /**
     * Applies the changes of a plan, secrets included; the rest stays staged, and the same plan can be applied again for it. Refused if
     * the files or the running configuration changed since.
     */
    applyPlan(who: string, plan: string): Doing<ApplyReport>
    /** Applies the content of an earlier version under a new number; config.json stays as it is. */
    rollback(who: string, version: number): Doing<ApplyReport>
    /** Reads secrets.json again, with the checks of choird's start, and makes the agents fetch (R34, R35). */
    applySecrets(who: string): Doing<SecretReport>
    readonly history: Effect.Effect<ReadonlyArray<VersionSummary>>
    /** The content of a version. */
    version(version: number): Doing<Config>
  }
>()("choir/choird/Reconfiguration") {
  static readonly layer = Layer.effect(
    Reconfiguration,
    Effect.suspend(() => make())
  )
}

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

/** One operation at a time, so that nothing is applied during a load; a second one is refused at once. */
const makeAlone = Effect.map(
  Semaphore.make(1),
  (one) =>
    <A>(doing: Doing<A>): Doing<A> =>
      Effect.flatMap(one.withPermitsIfAvailable(1)(doing), (done) =>
        Effect.mapError(Effect.fromOption(done), () =>
          refuse("BUSY", "another load, apply or rollback is under way", "try again when it is done")
        )
      )
)

const makeAudited = Effect.map(
  Audit,
  (audit) =>
    <A>(who: string, action: string, doing: Doing<A>, detail: (done: A) => AuditEntry["detail"]): Doing<A> =>
      doing.pipe(
        Effect.tap((done) => audit.record({ who, action, detail: detail(done) })),
        Effect.tapError(({ kind, problems }) =>
          audit.record({ who, action, detail: { refused: kind, paths: problems.map(({ path }) => path) } })
        )
      )
)

/** The content of a stored version, if this Choir can still use it. */
const makeContent = Effect.map(ConfigVersions, (versions) =>
  Effect.fnUntraced(function* (version: number) {
    const stored = yield* versions.content(version)
    if (Option.isNone(stored))
      return yield* refuse("NO_SUCH_VERSION", `there is no version ${version}`, "choirctl config history")
    const decoded = decode(stored.value)
    if (Result.isSuccess(decoded)) return decoded.success
    return yield* refuse(
      "CONFIG",
      `version ${version} is not valid in this Choir`,
      "choose another one: choirctl config history",
      problemsOf([decoded.failure.message])
    )
  })
)

/** The configuration that is loaded and does not run yet: in memory, until all of it is done. */
const makeStaging = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const store = yield* ConfigStore
  const versions = yield* ConfigVersions
  const changesOf = yield* makeStagedChanges
  const nextConfig = yield* makeNextConfig
  const staged = yield* Ref.make<Staged | undefined>(undefined)

  /** The rest of a staged configuration; it is forgotten if there is none. */
  const rest = Effect.fnUntraced(function* (target: Staged) {
    const rows = yield* changesOf(target)
    yield* Ref.set(staged, rows.length === 0 ? undefined : target)
    return rows
  })

  /** Puts into effect what needs no restart, under the next version. Agents hear of it from `ConfigStore.changes`. */
  const activate = Effect.fnUntraced(function* (
    entry: VersionEntry,
    target: Staged,
    { always = false, secrets }: { readonly always?: boolean; readonly secrets?: SecretsFile | undefined } = {}
  ) {
    const before = yield* changesOf(target)
    const { version: previous } = yield* store.current
    yield* versions.commit(entry, (running) => nextConfig(target.config, always, running, secrets))
    const { config, version } = yield* store.current
    if (version !== previous) yield* Effect.provideService(keepLastGood(store.home, config), FileSystem.FileSystem, fs)
    const after = yield* rest(target)
    const waiting = new Set(after.map(({ path }) => path))
    const gone = before.filter(({ path }) => !waiting.has(path))
    // choird adopts new addresses of repositories, which have no effect before a build.
    const left = gone
      .filter((row) => row.class === "restart-required")
      .map((row) => ({ ...row, command: onceApplied(row.command) }))
    const pending = [...after, ...left]
    const applied = gone.filter((row) => row.class === "hot-reload")
    return { version, previous, applied, pending } satisfies ApplyReport
  })

  /** Fails if nothing is staged. */
  const target = Effect.flatMap(Ref.get(staged), (target) =>
    target === undefined
      ? refuse("NOTHING_STAGED", "nothing is staged", "choirctl config load")
      : Effect.succeed(target)
  )
  return { staged, changesOf, activate, target }
})

const numbers = ({ applied, pending, previous, version }: ApplyReport) => ({
  version,
  previous,
  applied: applied.map(({ path }) => path),
  pending: pending.map(({ path }) => path)
})

/** The files of the home, checked with the repositories, which each agent reads by the identity that it has now. */
const loadFiles = Effect.fnUntraced(function* (progress: (step: string) => Effect.Effect<void>) {
  const lifecycle = yield* Lifecycle
  const runtime = yield* ContainerRuntime
  const { home } = yield* ConfigStore
  const views = yield* lifecycle.list
  const bound = new Map(views.map(({ agent_id, bindings }) => [agent_id, bindings?.git_identity]))
  return yield* loadHome(home, progress, runtime.type, bound)
})

/** Puts the keys of secrets.json into effect, also for a configuration that is staged. */
const applySecrets = Effect.fnUntraced(function* (who: string, staged: Ref.Ref<Staged | undefined>) {
  const store = yield* ConfigStore
  const versions = yield* ConfigVersions
  const secrets = yield* Effect.mapError(loadSecrets(store.home), fromConfigRefused)
  const changed = changedSecrets(yield* store.secrets, secrets)
  yield* versions.commit({ action: "secret apply", who }, () => Effect.succeed({ secrets }))
  yield* Ref.update(staged, (target) => (target?.secrets === undefined ? target : { ...target, secrets }))
  const { config, version } = yield* store.current
  const pending = secretRows(config, changed).filter((row) => row.class === "restart-required")
  return { version, changed, pending } satisfies SecretReport
})

const make = Effect.fnUntraced(function* () {
  const provide = Effect.provideContext(
    Context.pick(
      ConfigStore,
      ConfigVersions,
      ContainerRuntime,
      Lifecycle,
      Repos
    )(yield* Effect.context<ConfigStore | ConfigVersions | ContainerRuntime | Lifecycle | Repos>())
  )
  const store = yield* ConfigStore
  const versions = yield* ConfigVersions
  const alone = yield* makeAlone
  const audited = yield* makeAudited
  const contentOf = yield* makeContent
  const { changesOf, staged, activate, target } = yield* makeStaging
  const plans = yield* makePlans(changesOf)

  /** A version with a row is finished: kept as the last good one and audited, even if nobody waits any more. */
  const finished: typeof audited = (who, action, doing, detail) =>
    Effect.uninterruptible(audited(who, action, alone(doing), detail))

  const load = Effect.fnUntraced(function* (progress: (step: string) => Effect.Effect<void>) {
    const { loaded, warnings, ...target } = yield* provide(loadFiles(progress))
    const sent = newServers((yield* store.current).config, target.config)
    yield* Ref.set(staged, target)
    yield* plans.forget
    return {
      changes: yield* changesOf(target),
      repos: loaded,
      warnings: [...warnings, ...sent.map(({ message, path }) => `${path}: ${message}`)]
    } satisfies LoadReport
  })

  const applyPlan = Effect.fnUntraced(function* (who: string, plan: string) {
    const target = yield* plans.check(plan)
    const report = yield* activate({ action: "apply", who }, target, { secrets: target.secrets })
    yield* plans.applied
    return report
  })

  return Reconfiguration.of({
    load: Effect.fn("Reconfiguration.load")((who, progress) =>
      audited(who, "config.load", alone(load(progress)), ({ changes, repos }) => ({ changes: changes.length, repos }))
    ),
    diff: Effect.flatMap(Ref.get(staged), (target) => changesOf(target)),
    apply: Effect.fn("Reconfiguration.apply")((who) => {
      const doing = Effect.flatMap(target, (target) => activate({ action: "apply", who }, target))
      return finished(who, "config.apply", doing, numbers)
    }),
    plan: alone(Effect.flatMap(target, plans.make)),
    applyPlan: Effect.fn("Reconfiguration.applyPlan")((who, plan) =>
      finished(who, "config.apply", applyPlan(who, plan), numbers)
    ),
    rollback: Effect.fn("Reconfiguration.rollback")((who, version) => {
      const back = Effect.flatMap(contentOf(version), (config) =>
        activate({ action: "rollback", who }, { config }, { always: true })
      )
      return finished(who, "config.rollback", back, (done) => ({ to: version, ...numbers(done) }))
    }),
    applySecrets: Effect.fn("Reconfiguration.applySecrets")((who) =>
      finished(who, "secret.apply", provide(applySecrets(who, staged)), ({ changed, version }) => ({
        version,
        names: changed.map(({ name }) => name)
      }))
    ),
    history: versions.history,
    version: Effect.fn("Reconfiguration.version")(contentOf)
  })
})
