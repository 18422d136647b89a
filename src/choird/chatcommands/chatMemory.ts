/** The commands of a chat for its agent's memory: show it, say where it came from, forget parts of it. */
import { Effect, Option, Schema } from "effect"
import {
  type DocumentId,
  type Fact,
  FactKey,
  Forget,
  type ForgetPlan,
  type ForgetReceipt,
  type MemoryHit
} from "#schema/Memory.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { Forgetting } from "#src/choird/memory/Forgetting.ts"
import { Knowledge } from "#src/choird/memory/Knowledge.ts"
import { MemoryContents } from "#src/choird/memory/MemoryContents.ts"
import { wordsIn } from "#src/choird/memory/ranking.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { excerpt } from "#src/choird/memory/recallBlock.ts"
import { BoundedMap } from "#src/shared/boundedMap.ts"
import type { Answer } from "./Answer.ts"
import type { Speaker } from "./Speaker.ts"
import { monotonicMs } from "#src/shared/monotonicMs.ts"
import { DAY_CHARS, localMinute } from "#src/shared/text/localTime.ts"
import { firstPart } from "#src/shared/text/placeToCut.ts"

/** Facts and parts of sessions of one answer, and characters of each. */
const LISTED_MAX = 10
const FOUND_MAX = 5
const SHOWN_CHARS = 300
/** Tokens of an excerpt, which are SHOWN_CHARS characters at most. */
const FOUND_TOKENS = 75
/** How long a look at what would be forgotten waits for its yes, and how many wait. */
const LOOK_MINUTES_MAX = 2
const LOOKS_MAX = 256

/** `/memory keep 3` */
const KEEP = /^keep\s+(\d{1,3})$/iu

const notice = (...lines: ReadonlyArray<string>): Answer => ({ kind: "notice", text: lines.join("\n") })
const refusal = (text: string): Answer => ({ kind: "refusal", text })

/** On one line, so that no text looks like another line of the answer. */
const short = (text: string) => {
  const line = text.replaceAll(/\s+/gu, " ").trim()
  return line.length <= SHOWN_CHARS ? line : `${firstPart(line, SHOWN_CHARS)}…`
}

const day = (instant: string, zone: string | undefined) => localMinute(instant, zone).slice(0, DAY_CHARS)

const count = (number: number, one: string) => `${number} ${one}${number === 1 ? "" : "s"}`

const factLine =
  (zone: string | undefined) =>
  ({ created_at, key, text, untrusted }: Fact, place: number) =>
    `${place + 1}. ${key ?? "fact"}: ${short(text)} (${day(created_at, zone)}${untrusted ? ", untrusted" : ""})`

/** A hit with the part of it that has the words looked for. */
const hitLine = (query: string, zone: string | undefined) => {
  const words = [...wordsIn(query)].map((word) => ({ lexemes: [word] }))
  return (hit: MemoryHit) => foundLine({ ...hit, text: excerpt(hit.text, words, FOUND_TOKENS) }, zone)
}

/** A person knows a conversation by its time. */
const foundLine = ({ key, said_at, session_id, text, untrusted }: MemoryHit, zone: string | undefined) => {
  const place = session_id === undefined ? `, ${key ?? "fact"}` : ""
  return `${localMinute(said_at, zone)}${place}${untrusted === true ? ", untrusted" : ""}: ${short(text)}`
}

const conversations = (sessions: number, also: boolean) =>
  sessions === 0 ? "" : `${also ? "I also" : "I"} remember ${count(sessions, "earlier conversation")}. `

const planLines = ({ facts, sessions }: ForgetPlan): ReadonlyArray<string> => {
  const events = sessions.reduce((sum, session) => sum + session.events, 0)
  return [
    ...facts.slice(0, LISTED_MAX).map(({ key, text }) => `The fact ${key ?? ""}: ${short(text)}`.replace(" :", ":")),
    ...(facts.length > LISTED_MAX ? [`and ${count(facts.length - LISTED_MAX, "more fact")}`] : []),
    ...(sessions.length === 0
      ? []
      : [`The text of ${count(events, "event")} in ${count(sessions.length, "conversation")}, with their summaries`])
  ]
}

const receiptText = ({ events, facts, left, restarted }: ForgetReceipt) =>
  notice(
    `Forgotten: ${count(facts, "fact value")} and the text of ${count(events, "event")}.`,
    ...(restarted ? ["I was stopped for a moment and continue without it."] : []),
    ...left.map((line) => `Not forgotten: ${line}.`),
    "This chat's own messages stay until you delete them here."
  )

const isKey = Schema.is(FactKey)
const decodeForget = Schema.decodeUnknownOption(Forget)

/** The parts of a plan that a person saw, to compare a later plan with. */
const reachOf = ({ facts, sessions }: ForgetPlan): string =>
  JSON.stringify([facts.map(({ id }) => id), sessions.map(({ events, session_id }) => [session_id, events])])

interface Look {
  readonly forget: Forget
  readonly reach: string
  readonly asked_ms: number
}

/** A known key means its fact; everything else means the words. */
const orderOf = (text: string, isFact: boolean) =>
  decodeForget(isFact ? { type: "fact", key: text } : { type: "words", words: text })

export const makeChatMemory = Effect.gen(function* () {
  const contents = yield* MemoryContents
  const forgetting = yield* Forgetting
  const knowledge = yield* Knowledge
  const recall = yield* Recall
  const audit = yield* Audit
  const looks = new BoundedMap<string, Look>(LOOKS_MAX)
  /** The facts of the newest list that each person has seen, by their numbers. */
  const listed = new BoundedMap<string, ReadonlyArray<DocumentId>>(LOOKS_MAX)
  /** In a group, nobody confirms what somebody else looked at. */
  const lookerOf = ({ agent_id, dm, gateway, writer }: Speaker) => `${agent_id} ${gateway} ${dm} ${writer}`

  const known = Effect.fnUntraced(function* (speaker: Speaker) {
    const { agent_id, zone } = speaker
    const facts = yield* databaseDefect(knowledge.list(agent_id, { limit: LISTED_MAX }))
    listed.set(
      lookerOf(speaker),
      facts.map(({ id }) => id)
    )
    const { chunks, facts: all, sessions, summaries } = yield* databaseDefect(contents.summary(agent_id))
    if (all + chunks + summaries === 0) return notice("I remember nothing beyond this conversation yet.")
    return notice(
      ...(facts.length === 0 ? [] : ["What I know:", ...facts.map(factLine(zone))]),
      ...(all > facts.length ? [`and ${count(all - facts.length, "more fact")}`] : []),
      ...(facts.some(({ untrusted }) => untrusted) ? ["/memory keep <number> takes an untrusted fact for true."] : []),
      `${conversations(sessions, facts.length > 0)}/memory <words> searches everything, /forget <words> removes it.`
    )
  })

  /** Takes a fact for true that the same person has seen under this number. */
  const keep = Effect.fnUntraced(function* (place: number, speaker: Speaker) {
    const { agent_id, gateway } = speaker
    const id = listed.get(lookerOf(speaker))?.[place - 1]
    if (id === undefined) return refusal(`There is no fact ${place} in the list. Send /memory to see it.`)
    const fact = Option.getOrUndefined(yield* databaseDefect(knowledge.trust(agent_id, { id })))
    if (fact === undefined) return refusal(`Fact ${place} has changed since you saw it. Send /memory to see the list.`)
    const detail = { document_id: fact.id }
    yield* audit.record({ who: `gateway:${gateway}`, action: "memory.trust", agent_id, detail })
    return notice(`I take it for true: ${short(fact.text)}`)
  })

  const found = Effect.fnUntraced(function* (query: string, { agent_id, zone }: Speaker) {
    const asked = { query, limit: FOUND_MAX, mode: "hybrid", agent: agent_id, cross: false } as const
    const facts = yield* databaseDefect(recall.search({ ...asked, store: "knowledge" }))
    const parts = yield* databaseDefect(recall.search({ ...asked, store: "session" }))
    const hits = [...facts.hits, ...parts.hits]
    return hits.length === 0 ? notice("I remember nothing about that.") : notice(...hits.map(hitLine(query, zone)))
  })

  /** Shows what an order would remove, which a yes of the same person then confirms. */
  const look = Effect.fnUntraced(function* (forget: Forget, planned: ForgetPlan, title: string, speaker: Speaker) {
    const lines = planLines(planned)
    if (lines.length === 0) return notice("I remember nothing about that.")
    looks.set(lookerOf(speaker), { forget, reach: reachOf(planned), asked_ms: yield* monotonicMs })
    return notice(title, ...lines, `Send /forget yes within ${LOOK_MINUTES_MAX} minutes to remove it.`)
  })

  const plan = Effect.fnUntraced(function* (text: string, speaker: Speaker) {
    const { agent_id } = speaker
    const isFact = isKey(text) && (yield* databaseDefect(knowledge.history(agent_id, { key: text }))).length > 0
    const order = orderOf(text, isFact)
    if (order._tag === "None") return refusal("Give at least 3 characters, exactly as they were written.")
    const planned = yield* databaseDefect(forgetting.plan(agent_id, order.value))
    return yield* look(order.value, planned, "This would be removed for good:", speaker)
  })

  const confirmed = Effect.fnUntraced(function* (speaker: Speaker) {
    const { agent_id, gateway } = speaker
    const looked = looks.get(lookerOf(speaker))
    looks.delete(lookerOf(speaker))
    if (looked === undefined) return refusal("There is nothing to confirm. Send /forget with the words first.")
    const { asked_ms, forget, reach } = looked
    if ((yield* monotonicMs) - asked_ms > LOOK_MINUTES_MAX * 60_000)
      return refusal(`That was more than ${LOOK_MINUTES_MAX} minutes ago. Send /forget with the words again.`)
    // More may match by now than the person has seen.
    const planned = yield* databaseDefect(forgetting.plan(agent_id, forget))
    if (reachOf(planned) !== reach)
      return yield* look(
        forget,
        planned,
        "What matches has changed since you looked. This would be removed for good:",
        speaker
      )
    return yield* databaseDefect(forgetting.forget(agent_id, forget, `gateway:${gateway}`)).pipe(
      Effect.match({ onFailure: ({ message }) => refusal(`${message}.`), onSuccess: receiptText })
    )
  })

  return {
    /** The facts of the agent, what it remembers of some words, or a fact of the list that a person takes for true. */
    memory: (query: string | undefined, speaker: Speaker) => {
      const place = KEEP.exec(query ?? "")?.[1]
      if (place !== undefined) return keep(Number(place), speaker)
      return query === undefined ? known(speaker) : found(query, speaker)
    },
    /** Shows what would be forgotten, and forgets it at a yes to that. */
    forget: (text: string, speaker: Speaker) =>
      text.toLowerCase() === "yes" ? confirmed(speaker) : plan(text, speaker)
  }
})
