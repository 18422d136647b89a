/** Agents' memory for people. */
import type { AgentId } from "#schema/Ids.ts"
import type { Fact, FactSource, ForgetPlan, ForgetReceipt, MemoryAnswer, MemoryHit } from "#schema/Memory.ts"
import type { FactWritten, MemoryDetail, MemoryList } from "#schema/MemoryApi.ts"
import type { MemoryStatus } from "#schema/SystemApi.ts"
import { ago, fields, paint, safeLine, safeText, span, table } from "#src/choirctl/terminal/text.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

const texts = (count: number) => (count === 1 ? "1 text waits" : `${count} texts wait`)

const percent = (done: number, total: number) => (total === 0 ? 100 : Math.floor((100 * done) / total))

/** The model and what waits for it; while it fails, that searches go by words alone, and why. */
export const searchText = ({ failing_ms, model, problem, reembedding, waiting }: MemoryStatus): string => {
  if (model === null) return "searched by words alone: no embedding model is configured"
  const waits = waiting === 0 ? [] : [`${texts(waiting)} for a vector`]
  const change =
    reembedding === undefined
      ? []
      : [
          `${reembedding.done} of ${reembedding.total} texts (${percent(reembedding.done, reembedding.total)} %) have vectors of the new model; until all do, searches use the earlier one`
        ]
  const since = failing_ms === undefined ? "" : ` for ${span(failing_ms)}`
  const head =
    problem === undefined
      ? `searched by words and by ${safeLine(model)}`
      : `searched by words alone${since}, since ${safeLine(model)} fails: ${safeLine(problem)}`
  return [head, ...waits, ...change].join("; ")
}

/** Characters of a text in a table. */
const CELL_CHARS = 80

const short = (text: string) => {
  const line = safeLine(text)
  return line.length <= CELL_CHARS ? line : `${firstPart(line, CELL_CHARS - 1)}…`
}

const count = (number: number, one: string, many = `${one}s`) => `${number} ${number === 1 ? one : many}`

/** The source of a fact: its writer and place. */
const sourceText = ({ kind, rev, session_id, who }: FactSource): string => {
  if (kind === "operator") return "the operator"
  if (kind === "person") return safeLine(who ?? "a person")
  return session_id === undefined
    ? "the agent"
    : `the agent, session ${session_id}${rev === undefined ? "" : ` event ${rev}`}`
}

/** Facts as a table, and how much there is beside them. */
export const memoryText =
  (agent_id: AgentId, now_ms: number) =>
  ({ facts, summary }: MemoryList, color: boolean): string => {
    const { chunks, detail, sessions, summaries } = summary
    const rest = `${count(summary.facts, "fact")}; ${count(sessions, "session")} in ${count(chunks + summaries, "searchable part")}${detail === 0 ? "" : ` and ${count(detail, "detail part")}`}`
    if (facts.length === 0) return `${rest}\nto add a fact: choirctl memory set ${agent_id} KEY TEXT`
    const rows = facts.map(({ created_at, id, key, text, untrusted }) => [
      key ?? id,
      ago(created_at, now_ms),
      untrusted ? "untrusted" : "",
      short(text)
    ])
    const more =
      facts.length < summary.facts
        ? [`and ${summary.facts - facts.length} more: choirctl memory export ${agent_id}`]
        : []
    return [table(["FACT", "SINCE", "LABEL", "TEXT"], rows, color), ...more, rest].join("\n")
  }

const endText = ({ superseded_by, valid_to }: Fact): string =>
  valid_to === null ? "in force" : `${superseded_by === null ? "deleted" : "replaced"} ${valid_to}`

const factText = (fact: Fact): string =>
  [
    fields([
      ["fact", fact.key ?? fact.id],
      ["id", fact.id],
      ["state", endText(fact)],
      ["written", `${fact.created_at} by ${sourceText(fact.source)}`],
      ...(fact.untrusted
        ? [["label", `untrusted: text from ${fact.source.sources?.join(", ") ?? "outside"} led to it`] as const]
        : [])
    ]),
    safeText(fact.text)
  ].join("\n\n")

const hitPlace = ({ first_rev, key, last_rev, lane, session_id, source }: MemoryHit): string =>
  session_id === undefined
    ? `${key ?? "fact"}${source === undefined ? "" : `, by ${sourceText(source)}`}`
    : `session ${session_id}${lane === undefined || lane === "edge" ? "" : ` ${lane}`} events ${first_rev ?? "?"}-${last_rev ?? "?"}`

const hitText = (hit: MemoryHit, color: boolean): string =>
  [
    paint(
      color,
      "bold",
      `${hit.said_at} ${hitPlace(hit)}${hit.untrusted === true ? ` (untrusted${hit.sources === undefined ? "" : `, from ${hit.sources.join(", ")}`})` : ""}`
    ),
    paint(color, "dim", hit.id),
    safeText(hit.text)
  ].join("\n")

/** Hits one below the other, the best first. */
export const answerText = ({ hits, ranked_by }: MemoryAnswer, color: boolean): string =>
  hits.length === 0
    ? "nothing found"
    : [...hits.map((hit) => hitText(hit, color)), ...(ranked_by === "words" ? ["searched by words alone"] : [])].join(
        "\n\n"
      )

export const detailText = (detail: MemoryDetail, color: boolean): string => {
  if (detail.type === "fact") return detail.values.map(factText).join("\n\n")
  const { hit } = detail
  const { first_rev, last_rev, session_id } = hit
  const follow =
    session_id === undefined || first_rev === undefined || last_rev === undefined
      ? []
      : [`the events: choirctl session events ${session_id} --from ${first_rev}`]
  return [hitText(hit, color), ...follow].join("\n\n")
}

export const writtenText = ({ change, fact }: FactWritten): string => {
  const name = fact.key ?? fact.id
  return change === "same"
    ? `${name} already has this value`
    : `${name} is ${change === "inserted" ? "remembered" : "updated"}`
}

export const deletedText = ({ id, key }: Fact): string =>
  `${key ?? id} is deleted; its history and the conversation it came from stay until you forget them`

export const trustedText = ({ id, key }: Fact): string => `${key ?? id} is trusted now, and prompts may show it`

/** The reach of an order, in sentences for the person who confirms it. */
export const planText = (agent_id: AgentId, { facts, sessions }: ForgetPlan): ReadonlyArray<string> => [
  ...facts.map(({ id, key, text }) => `The fact ${key ?? id} will be deleted: ${short(text)}`),
  ...sessions.map(({ archived, events, running, session_id }) =>
    archived
      ? `The session ${session_id} is archived, and its file is not changed; to delete both: choirctl session delete ${session_id}`
      : `${count(events, "event")} of the session ${session_id} will lose their text, with its summary${running ? `; ${agent_id} is stopped for a moment` : ""}.`
  ),
  "This cannot be undone. Backups and exports that were made before keep the text."
]

/** Whether an order reaches anything. */
export const reachesNothing = ({ facts, sessions }: ForgetPlan): boolean => facts.length + sessions.length === 0

export const receiptText = ({
  agent_id,
  chunks,
  events,
  facts,
  left,
  restarted,
  texts,
  vectors
}: ForgetReceipt): string =>
  [
    `forgotten: ${count(facts, "fact value")}, text of ${count(events, "event")}, ${count(chunks, "part")} of sessions, ${count(vectors, "vector")}, ${count(texts, "queued text")}`,
    ...(restarted ? [`${agent_id} was stopped for a moment and continues without it`] : []),
    ...left.map((line) => `not forgotten: ${safeLine(line)}`)
  ].join("\n")
