/**
 * The tools of a trial: those of the agent, with their own checks of inputs, locks and effects, and with answers from a record instead of
 * their runs. What a call would write is kept for the trial's own reads, and nothing is done.
 */
import { Effect, type Schema } from "effect"
import { ToolName } from "#schema/Tool.ts"
import type { RecordedCall, TrialOutcome } from "#schema/Trial.ts"
import type { Tool, ToolOutcome } from "#src/agent/tools/Tool.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { layerReplaced, type Replace } from "./replacedTools.ts"
import { CORE_REPORT } from "#src/shared/session/calls.ts"

/** The effects of a trial so far. */
export type TrialEffects = Pick<TrialOutcome, "unanswered" | "external">

/** Tools that touch nothing but the trial's own log, and so run as they are. */
const OWN: ReadonlySet<string> = new Set([CORE_REPORT, "choir.memory.compact", "choir.memory.delta"])

const member = (input: unknown, key: string): unknown =>
  typeof input === "object" && input !== null ? (input as Readonly<Record<string, unknown>>)[key] : undefined

const textMember = (input: unknown, key: string): string | undefined => {
  const value = member(input, key)
  return typeof value === "string" ? value : undefined
}

const keyOf = (tool: string, input: unknown): string => `${tool} ${canonicalJson(input)}`

const BY_PATH: ReadonlySet<string> = new Set(["choir.fs.read", "choir.fs.write", "choir.fs.edit"])
const SEARCH = "choir.fs.search"

/** A search without its pattern. */
const placeOf = (input: unknown): unknown =>
  typeof input === "object" && input !== null ? { ...input, pattern: "", ignore_case: false } : input

/**
 * A call's kin: the same tool on the same path, or a search in the same place. A model that reads other lines of a file is shown what the record has
 * of the file.
 */
const kinOf = (tool: string, input: unknown): string | undefined => {
  if (tool === SEARCH) return keyOf(tool, placeOf(input))
  const path = BY_PATH.has(tool) ? textMember(input, "path") : undefined
  return path === undefined ? undefined : `${tool} ${path}`
}

const patternOf = (input: unknown): RegExp | undefined => {
  try {
    return new RegExp(textMember(input, "pattern") ?? "", member(input, "ignore_case") === true ? "iu" : "u")
  } catch {
    return undefined
  }
}

/** A recorded search by another pattern: of the lines that the record knows, those that fit. `undefined` where that cannot be said. */
const searchedAgain = (call: RecordedCall, input: unknown): RecordedCall | undefined => {
  const matches = member(call.output, "matches")
  const pattern = patternOf(input)
  if (pattern === undefined || !Array.isArray(matches)) return undefined
  const fitting = (matches as ReadonlyArray<Schema.Json>).filter((line) => pattern.test(textMember(line, "text") ?? ""))
  const output = { matches: fitting, truncated: member(call.output, "truncated") === true }
  return { ...call, summary: `${fitting.length} matching lines of those that were recorded`, output }
}

/** The results of a record. Repeated calls get them in order, and the last one from then on. */
const makeRecord = (record: ReadonlyArray<RecordedCall>) => {
  const exact = new Map<string, Array<RecordedCall>>()
  const kin = new Map<string, RecordedCall>()
  for (const call of record) {
    const key = keyOf(call.tool, call.input)
    exact.set(key, [...(exact.get(key) ?? []), call])
    const like = kinOf(call.tool, call.input)
    if (like !== undefined && !kin.has(like)) kin.set(like, call)
  }
  return (tool: string, input: unknown): RecordedCall | undefined => {
    const results = exact.get(keyOf(tool, input))
    if (results !== undefined) return results.length > 1 ? results.shift() : results[0]
    const like = kinOf(tool, input)
    const call = like === undefined ? undefined : kin.get(like)
    return call !== undefined && tool === SEARCH ? searchedAgain(call, input) : call
  }
}

const replayed = ({ output, status, summary, untrusted }: RecordedCall): ToolOutcome => ({
  status: status === "success" || status === "timeout" || status === "unknown_after_crash" ? status : "error",
  summary,
  ...(output === undefined ? {} : { output }),
  ...(untrusted === undefined ? {} : { untrusted })
})

/** The files that a trial would have written, as far as their whole text is known. */
const makeWritten = () => {
  const files = new Map<string, string>()
  const written = (tool: string, input: unknown): ToolOutcome | undefined => {
    const path = textMember(input, "path")
    if (path === undefined) return undefined
    const content = textMember(input, "content")
    const before = files.get(path)
    if (tool === "choir.fs.write" && content !== undefined) {
      if (member(input, "mode") === "overwrite") files.set(path, content)
      else if (member(input, "mode") === "append" && before !== undefined) files.set(path, before + content)
    }
    const old = textMember(input, "old_text")
    const next = textMember(input, "new_text")
    if (tool === "choir.fs.edit" && before !== undefined && old !== undefined && next !== undefined)
      files.set(
        path,
        before.replace(old, () => next)
      )
    const after = files.get(path)
    const output = { path, ...(after === undefined ? {} : { sha256: sha256(after) }) }
    return { status: "success", summary: `${path} was written`, output }
  }
  const read = (input: unknown): ToolOutcome | undefined => {
    const path = textMember(input, "path")
    const content = path === undefined ? undefined : files.get(path)
    if (path === undefined || content === undefined) return undefined
    const lines_total = content.split("\n").length
    const shown = { path, content, first_line: 1, last_line: lines_total, lines_total, sha256: sha256(content) }
    return {
      status: "success",
      summary: `lines 1-${lines_total} of ${lines_total} of ${path}`,
      output: { ...shown, truncated: false }
    }
  }
  return { read, written }
}

/** Answers for the calls of one trial, and a count of what they would have done. */
export const makeRecordedTools = (record: ReadonlyArray<RecordedCall>) => {
  const find = makeRecord(record)
  const { read, written } = makeWritten()
  const external = new Map<ToolName, number>()
  let unanswered = 0

  const answer = (tool: Tool, effect: Tool["effect"], input: unknown): ToolOutcome => {
    const { name } = tool.llm
    if (effect === "external") external.set(name, (external.get(name) ?? 0) + 1)
    const own = name === "choir.fs.read" ? read(input) : undefined
    if (own !== undefined) return own
    const known = find(name, input)
    if (known !== undefined) {
      if (effect !== "none") written(name, input)
      return replayed(known)
    }
    unanswered += 1
    if (name === "choir.fs.write" || name === "choir.fs.edit") {
      const outcome = written(name, input)
      if (outcome !== undefined) return outcome
    }
    return effect === "external"
      ? { status: "success", summary: "done", output: {} }
      : { status: "error", summary: "nothing was recorded for this; continue with what you have" }
  }

  const replace: Replace = (tool, prepared, input) => {
    if (OWN.has(tool.llm.name)) return undefined
    const effect = prepared.effect ?? tool.effect
    return {
      ...prepared,
      effect,
      confirm: Effect.undefined,
      run: () => Effect.sync(() => answer(tool, effect, input))
    }
  }

  const effects = (): TrialEffects => ({ unanswered, external: Object.fromEntries(external) })
  return { effects, layer: layerReplaced(replace) }
}
