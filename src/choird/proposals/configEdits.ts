/** The edits of config.json that an agent may propose, and their effect on the file. Pure. */
import { isDeepStrictEqual } from "node:util"
import { Result, Schema } from "effect"
import { Budgets, Config } from "#schema/Config.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { ConfigEdit } from "#schema/ProposedChange.ts"
import type { Before } from "#src/choird/approvals/Execution.ts"
import { problemsOf, problemText } from "#src/shared/config/configProblems.ts"
import { editJson, valueAt } from "#src/shared/config/jsonEdits.ts"

/** The defaults that name an agent's models and voice; whom it speaks to and what it may use is for the operator alone. */
const DEFAULTS: ReadonlySet<string> = new Set(["llm", "core_llm", "voice_profile"])
const NEEDED = "llm"

export const pathOf = ({ path }: ConfigEdit): ReadonlyArray<string> => path.slice(1).split("/")

const placeProblem = (agent_id: AgentId, edit: ConfigEdit): string | undefined => {
  const [section, ...rest] = pathOf(edit)
  if (section === "budgets" && rest.length === 1 && Object.hasOwn(Budgets.fields, rest[0] ?? "")) return undefined
  const [id, defaults, key = "", ...more] = rest
  const isOwn = section === "agents" && id === agent_id && defaults === "defaults" && more.length === 0
  if (!isOwn || !DEFAULTS.has(key))
    return `${edit.path} may not be proposed: only /budgets/<name> and llm, core_llm, voice_profile of /agents/${agent_id}/defaults`
  return edit.op === "remove" && key === NEEDED ? `${edit.path} cannot be removed` : undefined
}

/** Whether a change affects the agent's own bindings, which take effect at its next start. */
export const isBinding = (edit: ConfigEdit): boolean => pathOf(edit)[0] === "agents"

export interface EditedConfig {
  readonly text: string
  readonly before: ReadonlyArray<Before>
}

const decode = Schema.decodeUnknownResult(Config, { errors: "all", onExcessProperty: "error" })

/** The file with all edits, checked as by `config load`, and the values that they replaced. */
export const editConfig = (
  agent_id: AgentId,
  text: string,
  edits: ReadonlyArray<ConfigEdit>
): Result.Result<EditedConfig, string> => {
  const problems = edits.flatMap((edit) => placeProblem(agent_id, edit) ?? [])
  if (problems.length > 0) return Result.fail(problems.join("; "))
  if (new Set(edits.map(({ path }) => path)).size < edits.length) return Result.fail("two changes have the same path")
  const parsed: unknown = JSON.parse(text)
  const before = edits.map((edit): Before => {
    const path = pathOf(edit)
    const value = valueAt(parsed, path)
    return value === undefined ? { path } : { path, value: value as Schema.Json }
  })
  const written = edits.reduce((file, edit) => editJson(file, pathOf(edit), edit.value), text)
  return Result.mapBoth(decode(JSON.parse(written)), {
    onSuccess: () => ({ text: written, before }),
    onFailure: ({ message }) => problemsOf([message]).map(problemText).join("; ")
  })
}

/** The file with the earlier values restored; a section that becomes empty is removed. */
export const withoutEdits = (text: string, before: ReadonlyArray<Before>): string =>
  before.reduce((file, { path, value }) => {
    const restored = editJson(file, path, value)
    const section = path.slice(0, 1)
    return isDeepStrictEqual(valueAt(JSON.parse(restored), section), {})
      ? editJson(restored, section, undefined)
      : restored
  }, text)

const shown = (value: unknown) => (value === undefined ? "(not set: the default)" : JSON.stringify(value))

/** One line for each change. */
export const editText = (edit: ConfigEdit, { value }: Before): string =>
  `${edit.path}\n-${shown(value)}\n+${shown(edit.value)}`
