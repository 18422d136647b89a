/** What an operator is shown before a configuration is applied: old and new values, and what applying changes at once. Pure. */
import { Result } from "effect"
import type { Config } from "#schema/Config.ts"
import type { PlannedChange } from "#schema/ConfigApi.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { appliedConfig } from "./appliedConfig.ts"
import { differences } from "./differences.ts"
import { at, type ClassifiedChange, sinceStart } from "./reloadClasses.ts"
import type { AgentUse } from "./resourcesInUse.ts"

/** A longer value is cut: the operator has the file, and the line is to be read at a glance. */
const VALUE_CHARS_MAX = 60

const shown = (value: unknown): string | null => {
  if (value === undefined) return null
  const text = canonicalJson(value)
  return text.length <= VALUE_CHARS_MAX ? text : `${text.slice(0, VALUE_CHARS_MAX - 1)}…`
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

/** @param rows every change, those of secrets and repositories included; of these no value is shown. */
export const plannedChanges = (
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
