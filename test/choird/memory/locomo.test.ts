/**
 * How much of what answers LoCoMo's questions a search finds. Its conversations are not part of this repository: CHOIR_LOCOMO names a folder with
 * them (https://github.com/snap-research/locomo), one JSON file each; without it nothing is searched.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { ChoirEvent } from "#schema/Event.ts"
import { type AgentId, EDGE, InboxId, ResourceName, Rev, SessionId } from "#schema/Ids.ts"
import { agentSchema } from "#src/choird/database/AgentSchemas.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { type Chunk, chunkEvent, closeChunks, noChunks } from "#src/choird/memory/chunks.ts"
import { Embeddings } from "#src/choird/memory/Embeddings.ts"
import { EmbeddingQueue } from "#src/choird/memory/EmbeddingQueue.ts"
import { Recall } from "#src/choird/memory/Recall.ts"
import { estimateTokens } from "#src/shared/model/usage.ts"
import { describeEmbedded } from "../../support/engines.ts"
import { addAllWords, makeMemory } from "../../support/memoryRows.ts"
import { CONFIG, makeHome, newAgent } from "../../support/stores.ts"

const FOLDER = process.env["CHOIR_LOCOMO"]
const LIMIT_MS = 1_800_000
const MODES = ["hybrid", "text", "semantic"] as const
const PLACES = [5, 10] as const
/** Questions that nothing answers. */
const UNANSWERABLE = 5

const Turn = Schema.Struct({
  speaker: Schema.String,
  dia_id: Schema.String,
  text: Schema.String,
  blip_caption: Schema.optionalKey(Schema.String)
})
const Question = Schema.Struct({
  question: Schema.String,
  category: Schema.Int,
  evidence: Schema.optionalKey(Schema.Array(Schema.String))
})
const decodeTurns = Schema.decodeUnknownSync(Schema.Array(Turn))
const decodeQuestions = Schema.decodeUnknownSync(Schema.Array(Question))

interface Talk {
  readonly session_id: SessionId
  readonly turns: ReadonlyArray<typeof Turn.Type>
  readonly at_ms: number
}

const wordsOf = ({ blip_caption, speaker, text }: typeof Turn.Type): string =>
  `${speaker}: ${text}${blip_caption === undefined ? "" : ` (a picture: ${blip_caption})`}`

/** `1:47 pm on 18 May, 2023`. */
const timeOf = (text: string): number => Date.parse(text.replace(/^(.*?) (am|pm) on (.*)$/u, "$3 $1 $2 UTC"))

const talksOf = (conversation: Readonly<Record<string, unknown>>): ReadonlyArray<Talk> =>
  Object.keys(conversation).flatMap((key): ReadonlyArray<Talk> => {
    const number = /^session_(\d+)$/u.exec(key)?.[1]
    if (number === undefined) return []
    const session_id = SessionId.make(`0k8v3w9m2p1n${number.padStart(4, "0")}`)
    return [
      { session_id, turns: decodeTurns(conversation[key]), at_ms: timeOf(String(conversation[`${key}_date_time`])) }
    ]
  })

const chunksOf = ({ at_ms, turns }: Talk): ReadonlyArray<Chunk> => {
  let state = noChunks
  const chunks: Array<Chunk> = []
  for (const [index, turn] of turns.entries()) {
    const event: ChoirEvent = {
      v: 2,
      rev: Rev.make(index + 1),
      created_at: new Date(at_ms + 30_000 * index).toISOString(),
      salt: "0".repeat(32),
      event_type: "UserMsg",
      lane: EDGE,
      payload: {
        inbox_id: InboxId.make("1"),
        dm: ResourceName.make("me"),
        text: wordsOf(turn),
        attachments: []
      }
    }
    const done = chunkEvent(state, event, String(index + 1).padStart(64, "0"))
    state = done.state
    chunks.push(...done.chunks)
  }
  return [...chunks, ...closeChunks(state).chunks]
}

const services = (agents: ReadonlyArray<AgentId>) => {
  const [entry] = Object.values(CONFIG.agents)
  const home = makeHome({
    ...CONFIG,
    agents: Object.fromEntries(agents.map((agent) => [agent, entry])),
    embedding: { provider: "local" }
  })
  return Recall.layer.pipe(
    Layer.provideMerge(EmbeddingQueue.layer),
    Layer.provideMerge(Embeddings.layer),
    Layer.provideMerge(Layer.unwrap(Effect.map(home, (home) => ConfigStore.layer({ home })))),
    Layer.orDie
  )
}

const remember = Effect.fnUntraced(function* (agent: AgentId, talks: ReadonlyArray<Talk>) {
  const sql = yield* SqlClient.SqlClient
  yield* makeMemory(agent)
  for (const talk of talks)
    for (const [place, { first_rev, last_rev, text }] of chunksOf(talk).entries())
      yield* sql`INSERT INTO ${sql(`${agentSchema(agent)}.memory_documents`)}
        (session_id, tier, lane, first_rev, last_rev, source_events, chunk_index, text, text_hash, untrusted, said_at)
        VALUES (${talk.session_id}, 'mid_term', 'edge', ${first_rev}, ${last_rev}, '{}', ${place}, ${text},
          sha256(convert_to(${text}, 'UTF8')), false, ${new Date(talk.at_ms).toISOString()}::timestamptz)`
  yield* addAllWords(agent)
}, Effect.orDie)

interface Score {
  readonly mode: (typeof MODES)[number]
  readonly shares: ReadonlyArray<number>
  readonly tokens: number
}

const onOneLine = (text: string): string => text.replaceAll(/\s+/gu, " ").trim()

/** The share of a question's evidence that the texts of the first hits have whole. */
const scoresOf = Effect.fnUntraced(function* (
  agent: AgentId,
  { evidence = [], question }: typeof Question.Type,
  talks: ReadonlyArray<Talk>
) {
  const { search } = yield* Recall
  const wanted = new Set(evidence.flatMap((ids) => ids.match(/D\d+:\d+/gu) ?? []))
  const most = Math.max(...PLACES)
  return yield* Effect.forEach(MODES, (mode) =>
    Effect.map(
      search({ store: "session", mode, query: question.slice(0, 500), limit: most, agent, cross: false }),
      ({ hits }): Score => {
        const shown = hits.map(({ session_id, text }) => {
          const turns = talks.find((talk) => talk.session_id === session_id)?.turns ?? []
          const line = onOneLine(text)
          return turns.filter((turn) => line.includes(onOneLine(wordsOf(turn)))).map(({ dia_id }) => dia_id)
        })
        return {
          mode,
          shares: PLACES.map((places) => {
            const found = new Set(shown.slice(0, places).flat())
            return [...wanted].filter((id) => found.has(id)).length / Math.max(1, wanted.size)
          }),
          tokens: hits.slice(0, PLACES[0]).reduce((sum, { text }) => sum + estimateTokens(text.length), 0)
        }
      }
    )
  )
})

const mean = (values: ReadonlyArray<number>) =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)

describe("the time of a conversation of LoCoMo", () => {
  it("is read as it is written there", () => {
    assert.strictEqual(timeOf("1:47 pm on 18 May, 2023"), Date.UTC(2023, 4, 18, 13, 47))
    assert.strictEqual(timeOf("12:09 am on 13 September, 2023"), Date.UTC(2023, 8, 13, 0, 9))
  })
})

if (FOLDER !== undefined)
  describeEmbedded("the conversations of LoCoMo", (onDatabase) => {
    onDatabase.effect(
      "are found again by their questions",
      () => {
        const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"))
        const read = files.map(
          (name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as Record<string, unknown>
        )
        const agents = read.map(() => newAgent())
        return Effect.gen(function* () {
          const scores: Array<Score> = []
          let questions = 0
          for (const [at, conversation] of read.entries()) {
            const agent = agents[at] ?? assert.fail("no agent")
            const talks = talksOf(conversation)
            yield* remember(agent, talks)
            assert.isUndefined(yield* (yield* EmbeddingQueue).drain)
            const asked = decodeQuestions(conversation["qa"]).filter(
              ({ category, evidence = [] }) => category !== UNANSWERABLE && evidence.length > 0
            )
            questions += asked.length
            for (const question of asked) scores.push(...(yield* scoresOf(agent, question, talks)))
          }
          const lines = MODES.map((mode) => {
            const of = scores.filter((score) => score.mode === mode)
            const shares = PLACES.map(
              (places, at) => `recall@${places} ${(100 * mean(of.map(({ shares }) => shares[at] ?? 0))).toFixed(1)} %`
            )
            return `${mode}: ${shares.join(", ")}; ${Math.round(mean(of.map(({ tokens }) => tokens)))} tokens of the first ${PLACES[0]}`
          })
          yield* Effect.logInfo(`${files.length} conversations, ${questions} questions\n${lines.join("\n")}`)
          const hybrid = mean(scores.filter(({ mode }) => mode === "hybrid").map(({ shares }) => shares[1] ?? 0))
          assert.isAtLeast(hybrid, 0.5)
        }).pipe(Effect.provide(services(agents)))
      },
      LIMIT_MS
    )
  })
