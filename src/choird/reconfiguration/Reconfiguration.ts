/**
 * Changes what choird runs with, in two phases: load reads and checks everything and stages it, apply takes over what needs no
 * restart. What is staged lives in memory and stays until nothing of it is left to be done.
 */
import { Context, Effect, Layer, Option, Ref, Result, Schema, Semaphore } from "effect"
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
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Audit, type AuditEntry } from "#src/choird/logs/Audit.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { ContainerRuntime } from "#src/choird/runtime/ContainerRuntime.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { loadSecrets } from "#src/shared/config/configFiles.ts"
import { problemsOf } from "#src/shared/config/configProblems.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type ConfigurationRefused, fromConfigRefused, refuse } from "./ConfigurationRefused.ts"
import { ConfigVersions, type VersionEntry } from "#src/choird/config/ConfigVersions.ts"
import { keepLastGood } from "./LastGood.ts"
import { loadHome } from "./loadHome.ts"
import { makeNextConfig } from "./nextConfig.ts"
import { isUp } from "./resourcesInUse.ts"
import { changedSecrets, secretRows } from "./secretChanges.ts"
import { makePlans } from "./Plans.ts"
import { makeStagedChanges, type Staged } from "./stagedChanges.ts"

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
    /** What is staged, for an operator to see before it is applied. A later load or rollback makes this plan worthless. */
    readonly plan: Doing<ConfigPlan>
    /**
     * Applies what a plan showed, secrets included; the rest stays staged, and the same plan can be applied again for it. Refused when
     * the files or what runs are no longer as they were shown.
     */
    applyPlan(who: string, plan: string): Doing<ApplyReport>
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

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

const make = Effect.fnUntraced(function* () {
  const audit = yield* Audit
  const lifecycle = yield* Lifecycle
  const repos = yield* Repos
  const runtime = yield* ContainerRuntime
  const signals = yield* Signals
  const store = yield* ConfigStore
  const versions = yield* ConfigVersions
  const changesOf = yield* makeStagedChanges
  const nextConfig = yield* makeNextConfig
  const one = yield* Semaphore.make(1)
  const staged = yield* Ref.make<Staged | undefined>(undefined)
  const plans = yield* makePlans(changesOf)

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

  /** Heartbeats would tell the agents as well; this tells them now. */
  const tellAgents = Effect.fnUntraced(function* (version: number) {
    for (const view of yield* lifecycle.list) {
      if (view.session_id !== null && isUp(view)) yield* signals.configChanged(view.session_id, version)
    }
  })

  /** What is left of a staged configuration; it is forgotten when nothing is. */
  const left = Effect.fnUntraced(function* (target: Staged) {
    const rows = yield* changesOf(target)
    yield* Ref.set(staged, rows.length === 0 ? undefined : target)
    return rows
  })

  const takeOver = Effect.fnUntraced(function* (
    entry: VersionEntry,
    target: Staged,
    { always = false, secrets }: { readonly always?: boolean; readonly secrets?: SecretsFile | undefined } = {}
  ) {
    const before = yield* changesOf(target)
    const { version: previous } = yield* store.current
    const version = yield* versions.commit(entry, (running) => nextConfig(target.config, always, running, secrets))
    if (version !== previous) {
      yield* keepLastGood(store.home, (yield* store.current).config)
      yield* tellAgents(version)
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
    const views = yield* lifecycle.list
    const bound = new Map(views.map(({ agent_id, bindings }) => [agent_id, bindings?.git_identity]))
    const home = yield* loadHome(repos, store.home, progress, runtime.type, bound)
    const { loaded, warnings, ...target } = home
    yield* Ref.set(staged, target)
    yield* plans.forget
    return { changes: yield* changesOf(target), repos: loaded, warnings } satisfies LoadReport
  })

  const apply = Effect.fnUntraced(function* (who: string) {
    const target = yield* Ref.get(staged)
    if (target === undefined) return yield* refuse("NOTHING_STAGED", "nothing is staged", "choirctl config load")
    return yield* takeOver({ action: "apply", who }, target)
  })

  const applyPlan = Effect.fnUntraced(function* (who: string, plan: string) {
    const target = yield* plans.check(plan)
    const report = yield* takeOver({ action: "apply", who }, target, { secrets: target.secrets })
    yield* plans.applied
    return report
  })

  const applySecrets = Effect.fnUntraced(function* (who: string) {
    const secrets = yield* Effect.mapError(loadSecrets(store.home), fromConfigRefused)
    const changed = changedSecrets(yield* store.secrets, secrets)
    const version = yield* versions.commit({ action: "secret apply", who }, () => Effect.succeed({ secrets }))
    yield* Ref.update(staged, (target) => (target?.secrets === undefined ? target : { ...target, secrets }))
    yield* tellAgents(version)
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
    diff: Effect.flatMap(Ref.get(staged), (target) => changesOf(target)),
    // What has a row is finished: told to the agents, kept as the last good one and audited, whether or not somebody still waits.
    apply: Effect.fn("Reconfiguration.apply")((who) =>
      Effect.uninterruptible(audited(who, "config.apply", alone(apply(who)), numbers))
    ),
    plan: alone(
      Effect.flatMap(Ref.get(staged), (target) =>
        target === undefined
          ? refuse("NOTHING_STAGED", "nothing is staged", "choirctl config load")
          : plans.make(target)
      )
    ),
    applyPlan: Effect.fn("Reconfiguration.applyPlan")((who, plan) =>
      Effect.uninterruptible(audited(who, "config.apply", alone(applyPlan(who, plan)), numbers))
    ),
    rollback: Effect.fn("Reconfiguration.rollback")((who, version) => {
      const back = Effect.flatMap(contentOf(version), (config) =>
        takeOver({ action: "rollback", who }, { config }, { always: true })
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
