/** An independent check of a printed history: from the canonical form alone, with none of Choir's own code (docs/log.md, The chain). */
import { createHash } from "node:crypto"
import type { PrintedEvent } from "#schema/SessionsApi.ts"

/** RFC 8785 for what JSON.parse gives: keys sorted by UTF-16 units, numbers and strings as JSON.stringify writes them. */
const canonical = (value: unknown): string => {
  if (value === null || typeof value !== "object") return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(",")}}`
}

/** What the chain covers of an event: all of it, or from version 2 on a header in which a salted digest stands for the payload. */
const covered = ({ payload, payload_digest, salt = "", ...header }: PrintedEvent["event"]): unknown => {
  if (header.v === 1) return { ...header, payload }
  const digest = createHash("sha256").update(Buffer.from(salt, "hex")).update(canonical(payload)).digest("hex")
  return { ...header, payload_digest: payload_digest ?? digest }
}

/** What is wrong with a history, in sentences; nothing for a sound one. */
export const historyProblems = (session_id: string, history: ReadonlyArray<PrintedEvent>): ReadonlyArray<string> => {
  let hash = createHash("sha256").update("choir/1").update(session_id).digest()
  const problems: Array<string> = []
  history.forEach(({ event, hash: printed }, index) => {
    if (event.rev !== index + 1) problems.push(`revision ${event.rev} stands at place ${index + 1}`)
    const place = Buffer.alloc(8)
    place.writeBigUInt64BE(BigInt(event.rev))
    hash = createHash("sha256")
      .update(hash)
      .update(place)
      .update(canonical(covered(event)))
      .digest()
    if (hash.toString("hex") !== printed) problems.push(`the hash of revision ${event.rev} differs`)
  })
  return problems
}

/** Each message has one UserMsg and one reply, and nothing else has. */
export const conversationProblems = (
  inbox_ids: ReadonlyArray<string>,
  history: ReadonlyArray<PrintedEvent>
): ReadonlyArray<string> => {
  const count = (ids: ReadonlyArray<string>) => {
    const counted = new Map<string, number>()
    for (const id of ids) counted.set(id, (counted.get(id) ?? 0) + 1)
    return counted
  }
  const heard = count(history.flatMap(({ event }) => (event.event_type === "UserMsg" ? [event.payload.inbox_id] : [])))
  const replied = count(
    history.flatMap(({ event }) =>
      event.event_type === "AgentMessage" && event.payload.kind === "reply" ? (event.payload.in_reply_to ?? "none") : []
    )
  )
  return [
    ...inbox_ids.flatMap((id) => [
      ...(heard.get(id) === 1 ? [] : [`message ${id} was taken ${heard.get(id) ?? 0} times`]),
      ...(replied.get(id) === 1 ? [] : [`message ${id} was answered ${replied.get(id) ?? 0} times`])
    ]),
    ...(heard.size === inbox_ids.length ? [] : [`${heard.size} messages were taken, ${inbox_ids.length} were sent`])
  ]
}

/** No external call took effect twice, and none is called done that left no trace. */
export const ledgerProblems = (
  ledger: ReadonlyArray<string>,
  history: ReadonlyArray<PrintedEvent>
): ReadonlyArray<string> => {
  const twice = ledger.filter((id, index) => ledger.indexOf(id) !== index).map((id) => `${id} took effect twice`)
  const external = new Set(
    history.flatMap(({ event }) =>
      event.event_type === "ToolCallRequested" && event.payload.effect === "external"
        ? [event.payload.call_id as string]
        : []
    )
  )
  const missing = history.flatMap(({ event }) =>
    event.event_type === "ToolResultCommitted" &&
    external.has(event.payload.call_id) &&
    event.payload.status === "success" &&
    !ledger.includes(event.payload.call_id)
      ? [`${event.payload.call_id} is called done and left no trace`]
      : []
  )
  const unasked = ledger
    .filter((id) => !external.has(id))
    .map((id) => `${id} took effect without an acknowledged intent`)
  return [...twice, ...missing, ...unasked]
}
