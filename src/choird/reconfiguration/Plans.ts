/** The plan that an operator saw last, and the check that applying it would still do the same. */
import { firstPart } from "#src/shared/text/placeToCut.ts"
import { randomUUID } from "node:crypto"
import { Effect, Ref, Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { ConfigPlan, PlannedChange } from "#schema/ConfigApi.ts"
import type { SecretsFile } from "#schema/Secrets.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { loadFiles } from "#src/shared/config/configFiles.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { refuse } from "./ConfigurationRefused.ts"
import { type AgentUse, differences, usesOf } from "./resourcesInUse.ts"
import { at, type ClassifiedChange, sinceStart } from "./reloadClasses.ts"
import { changedSecrets } from "./secretChanges.ts"
import type { Staged } from "./stagedChanges.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { appliedConfig } from "./nextConfig.ts"

/** Characters of a value on a line that is read at a glance; the operator has the file. */
const VALUE_CHARS_MAX = 60

const shown = (value: unknown): string | null => {
  if (value === undefined) return null
  const text = canonicalJson(value)
  return text.length <= VALUE_CHARS_MAX ? text : `${firstPart(text, VALUE_CHARS_MAX - 1)}…`
}

interface Values {
  readonly before: string | null
  readonly after: string | null
}

const keyOf = (path: ReadonlyArray<string>) => path.join(".")

/** The values at each path that differs from what runs, or from what a running agent was started with. */
const valuesOf = (running: Config, target: Config, uses: ReadonlyArray<AgentUse>): ReadonlyMap<string, Values> =>
  new Map([
    ...uses.flatMap((use) =>
      sinceStart(target, use).map(
        ({ path }) =>
          [keyOf(path), { before: shown(at(use.started_with, path)), after: shown(at(target, path)) }] as const
      )
    ),
    ...differences(running, target).map(
      ({ path }) => [keyOf(path), { before: shown(at(running, path)), after: shown(at(target, path)) }] as const
    )
  ])

const NO_VALUES: Values = { before: null, after: null }

/** @param rows every change, including those of secrets and repositories, whose values are never shown. */
const plannedChanges = (
  running: Config,
  target: Config,
  uses: ReadonlyArray<AgentUse>,
  rows: ReadonlyArray<ClassifiedChange>
): ReadonlyArray<PlannedChange> => {
  const values = valuesOf(running, target, uses)
  const mixed = Result.getOrElse(appliedConfig(running, target, uses), () => target)
  const applied = new Set(differences(running, mixed).map(({ path }) => keyOf(path)))
  return rows.map((row) => ({
    ...row,
    ...(values.get(row.path) ?? NO_VALUES),
    applies: applied.has(row.path) || row.path.startsWith("secrets.")
  }))
}

/** Both files as values. */
interface Files {
  readonly config: Config
  readonly secrets: SecretsFile
}

/** `shown` is what ran when the operator saw the difference to `target`. */
interface Shown {
  readonly id: string
  readonly target: Staged
  readonly shown: Files
}

const isSame = (one: Files, other: Files) =>
  differences(one.config, other.config).length === 0 && changedSecrets(one.secrets, other.secrets).length === 0

const changed = (what: string) =>
  refuse("CHANGED", `${what} after the changes were shown. Nothing was applied.`, "choirctl config apply")

/** @param changesOf every change that a staged configuration makes. */
export const makePlans = Effect.fnUntraced(function* (
  changesOf: (target: Staged) => Effect.Effect<ReadonlyArray<ClassifiedChange>>
) {
  const lifecycle = yield* Lifecycle
  const store = yield* ConfigStore
  const last = yield* Ref.make<Shown | undefined>(undefined)
  const running = Effect.gen(function* () {
    return { config: (yield* store.current).config, secrets: yield* store.secrets } satisfies Files
  })

  const make = Effect.fnUntraced(function* (target: Staged) {
    const { version } = yield* store.current
    const shown = yield* running
    const uses = usesOf(shown.config, yield* lifecycle.list)
    const changes = plannedChanges(shown.config, target.config, uses, yield* changesOf(target))
    const id = randomUUID()
    yield* Ref.set(last, { id, target, shown })
    return { plan: id, version, changes } satisfies ConfigPlan
  })

  /** Reads the files again, although the staged state is applied: an operator who kept editing believes that the edits count. */
  const check = Effect.fnUntraced(function* (id: string) {
    const plan = yield* Ref.get(last)
    if (plan?.id !== id) return yield* changed("Another configuration was loaded or applied")
    if (!isSame(plan.shown, yield* running)) return yield* changed("The running configuration changed")
    const { config, secrets } = plan.target
    // After a rollback there is no file to compare with.
    if (secrets === undefined) return plan.target
    const files = yield* Effect.result(loadFiles(store.home))
    if (Result.isFailure(files) || !isSame({ config, secrets }, files.success))
      return yield* changed("config.json or secrets.json changed")
    return plan.target
  })

  return {
    /** Gives the staged state an id, so that it can be applied as shown. */
    make,
    /** The target of the plan with this id; refused if anything is no longer as shown. */
    check,
    /** Notes that the plan was applied, so that the same plan can be applied again after restarts. */
    applied: Effect.flatMap(running, (shown) => Ref.update(last, (plan) => plan && { ...plan, shown })),
    /** Something else is staged. */
    forget: Ref.set(last, undefined)
  }
})
