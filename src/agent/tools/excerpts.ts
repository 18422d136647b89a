/**
 * Excerpts of edge's reading that it hands to a job: by the path of a file that it read or by the hash of a result's event. The job's start
 * holds the text as edge was shown it, with the marks on where it came from; a job that starts is tainted where edge is.
 */
import { Effect, Result } from "effect"
import type { Excerpt } from "#schema/Core.ts"
import type { ChoirEvent, EventOf } from "#schema/Event.ts"
import { EDGE, type JobName } from "#schema/Ids.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import { outputRevOf } from "#src/shared/session/search.ts"
import { counted, plural } from "#src/shared/text/counts.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { callLine } from "#src/agent/memory/stubs.ts"
import type { Reading } from "#src/agent/model/prompt/promptMessages.ts"
import { MEMORY_QUERY, type Offered } from "#src/agent/model/offeredTools.ts"
import { toolText } from "#src/agent/model/prompt/toolText.ts"

/** Paths and hashes that one job is given, and the bytes of the results behind them. */
export const EXCERPTS_FROM_MAX = 16
export const EXCERPTS_BYTES_MAX = 64 * 1024

type ToolResult = EventOf<"ToolResultCommitted">

/** A result with the call that it is of. */
interface Found {
  readonly event: ToolResult
  readonly call: EventOf<"ModelOutput">["payload"]["tool_calls"][number]
}

const isHash = (wanted: string): boolean => /^[0-9a-f]{8,64}$/iu.test(wanted)

/** Edge's results in the log, by the names that a model has for them. */
const makeReadings = Effect.map(EventLog, (log) => {
  /** The successful results that are here, the newest first. What left the agent has to be read again. */
  const resultsOfEdge = function* (): Generator<ToolResult> {
    for (let rev = log.head(); rev >= log.oldest(); rev--) {
      const event: ChoirEvent = log.get(rev)
      if (event.event_type === "ToolResultCommitted" && event.lane === EDGE && event.payload.status === "success")
        yield event
    }
  }
  return {
    byHash: (hash: string): ReadonlyArray<ToolResult> => {
      for (const event of resultsOfEdge()) if (log.hashAt(event.rev).startsWith(hash.toLowerCase())) return [event]
      return []
    },
    /** The parts of a file that edge has read of its newest version, in the order in which it read them. */
    byPath: (path: string): ReadonlyArray<ToolResult> => {
      let newest: string | undefined
      const found: Array<ToolResult> = []
      for (const event of resultsOfEdge()) {
        const read = event.payload.reads?.find((file) => file.path === path)
        if (read === undefined) continue
        newest ??= read.sha256
        if (read.sha256 !== newest) break
        found.unshift(event)
      }
      return found
    },
    withCall: (event: ToolResult): Found | undefined => {
      const { call_id } = event.payload
      const output = log.find(outputRevOf(call_id) ?? 0)
      const call =
        output?.event_type === "ModelOutput"
          ? output.payload.tool_calls.find((each) => each.call_id === call_id)
          : undefined
      return call === undefined ? undefined : { event, call }
    }
  }
})

/** A job's own log begins with its start, so that nothing of edge's is found in it. */
const toolsOfJob = (offered: Offered): Offered => new Set([...offered].filter((name) => name !== MEMORY_QUERY))

/** The results that are meant, or why they cannot be handed over. `allowed` are the tools that the job is constrained to. */
export type FindExcerpts = (
  wanted: ReadonlyArray<string>,
  job_name: JobName,
  allowed: ReadonlyArray<string>
) => Result.Result<ReadonlyArray<Excerpt>, string>

const missingText = (missing: ReadonlyArray<string>): string =>
  `you have no result of ${missing.join(", ")} to hand over: read it first, or leave it out of excerpts_from, which takes paths of files that you have read and hashes of your results`

export const makeFindExcerpts = Effect.fnUntraced(function* (
  isMasked: Reading["isMasked"],
  offeredTo: (job_name: JobName, allowed: ReadonlyArray<string>) => Offered
) {
  const { byHash, byPath, withCall } = yield* makeReadings
  const find: FindExcerpts = (wanted, job_name, allowed) => {
    if (wanted.length === 0) return Result.succeed([])
    const found = new Map<string, Found>()
    const missing: Array<string> = []
    for (const each of wanted) {
      const path = pathInside(each) ?? each
      const read = byPath(path)
      const results = read.length > 0 || !isHash(each) ? read : byHash(each)
      // One that prompts mask has no text that edge was shown.
      const known = results.flatMap((event) => withCall(event) ?? []).filter(({ call }) => !isMasked(call.name))
      if (known.length === 0) missing.push(each)
      for (const result of known) found.set(result.event.payload.call_id, result)
    }
    if (missing.length > 0) return Result.fail(missingText(missing))
    const tools = toolsOfJob(offeredTo(job_name, allowed))
    const excerpts = [...found.values()].map(({ call, event }): Excerpt => {
      const { call_id, reads } = event.payload
      return {
        call_id,
        tool: callLine(call.name, call.input),
        text: toolText(event, call.name.replaceAll(".", "-"), false, tools),
        ...(reads === undefined ? {} : { reads })
      }
    })
    const bytes = excerpts.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
    return bytes > EXCERPTS_BYTES_MAX
      ? Result.fail(
          `${plural(excerpts.length, "result")} of ${counted(bytes)} bytes are more than a job is given (${counted(EXCERPTS_BYTES_MAX)}): name fewer in excerpts_from`
        )
      : Result.succeed(excerpts)
  }
  return find
})
