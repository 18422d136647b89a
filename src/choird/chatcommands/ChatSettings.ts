/** Settings that the people of a chat chose for it, and the id of a group that became a supergroup. A chat without a row has the defaults. */
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { JobName, ResourceName, SessionId } from "#schema/Ids.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { type DatabaseAway, useDatabase } from "#src/choird/database/DatabaseAway.ts"

/** `on`: all answers. `mirror`: those to voice messages. `off`: none. */
export type VoiceMode = "on" | "mirror" | "off"

const isVoiceMode = (text: string | undefined): text is VoiceMode =>
  text === "on" || text === "mirror" || text === "off"

/** A topic of a chat that belongs to a job. */
export interface JobTopic {
  readonly session_id: SessionId
  readonly job_name: JobName
  readonly thread_id: number
  /** It is `closed` when the job has ended, and `gone` when the person deleted it. */
  readonly state: "open" | "closed" | "gone"
}

export class ChatSettings extends Context.Service<
  ChatSettings,
  {
    /** Whether tables and long answers come as rich messages, which old apps do not show. */
    rich(dm: ResourceName): Effect.Effect<boolean, DatabaseAway>
    setRich(dm: ResourceName, rich: boolean): Effect.Effect<void, DatabaseAway>
    /** Whether a message that the agent's queue took gets a reaction. */
    reactions(dm: ResourceName): Effect.Effect<boolean, DatabaseAway>
    setReactions(dm: ResourceName, reactions: boolean): Effect.Effect<void, DatabaseAway>
    /** The id that the chat with this id in config.json has now, if it moved. */
    moved(dm: ResourceName, from: string): Effect.Effect<string | undefined, DatabaseAway>
    setMoved(dm: ResourceName, from: string, to: string): Effect.Effect<void, DatabaseAway>
    /** The answers that come as voice notes, too. */
    voice(dm: ResourceName): Effect.Effect<VoiceMode, DatabaseAway>
    setVoice(dm: ResourceName, voice: VoiceMode): Effect.Effect<void, DatabaseAway>
    /** The topics that belong to jobs, the oldest first. Only the reader of the DM's outbox sets them. */
    topics(dm: ResourceName): Effect.Effect<ReadonlyArray<JobTopic>, DatabaseAway>
    setTopics(dm: ResourceName, topics: ReadonlyArray<JobTopic>): Effect.Effect<void, DatabaseAway>
  }
>()("choir/choird/ChatSettings") {
  static readonly layer = Layer.effect(
    ChatSettings,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const onDatabase = yield* useDatabase
      return ChatSettings.of({
        rich: Effect.fn("ChatSettings.rich")(function* (dm) {
          const [row] = yield* sql<{
            readonly rich: boolean
          }>`SELECT rich FROM choir_control.chat_settings WHERE dm = ${dm}`
          return row?.rich === true
        }, onDatabase),
        setRich: Effect.fn("ChatSettings.setRich")(function* (dm, rich) {
          yield* sql`INSERT INTO choir_control.chat_settings (dm, rich) VALUES (${dm}, ${rich})
            ON CONFLICT (dm) DO UPDATE SET rich = excluded.rich`
        }, onDatabase),
        reactions: Effect.fn("ChatSettings.reactions")(function* (dm) {
          const [row] = yield* sql<{
            readonly reactions: boolean
          }>`SELECT reactions FROM choir_control.chat_settings WHERE dm = ${dm}`
          return row?.reactions !== false
        }, onDatabase),
        setReactions: Effect.fn("ChatSettings.setReactions")(function* (dm, reactions) {
          yield* sql`INSERT INTO choir_control.chat_settings (dm, reactions) VALUES (${dm}, ${reactions})
            ON CONFLICT (dm) DO UPDATE SET reactions = excluded.reactions`
        }, onDatabase),
        moved: Effect.fn("ChatSettings.moved")(function* (dm, from) {
          const [row] = yield* sql<{ readonly moved_to: string }>`SELECT moved_to FROM choir_control.chat_settings
            WHERE dm = ${dm} AND moved_from = ${from} AND moved_to IS NOT NULL`
          return row?.moved_to
        }, onDatabase),
        setMoved: Effect.fn("ChatSettings.setMoved")(function* (dm, from, to) {
          yield* sql`INSERT INTO choir_control.chat_settings (dm, moved_from, moved_to) VALUES (${dm}, ${from}, ${to})
            ON CONFLICT (dm) DO UPDATE SET moved_from = excluded.moved_from, moved_to = excluded.moved_to`
        }, onDatabase),
        voice: Effect.fn("ChatSettings.voice")(function* (dm) {
          const [row] = yield* sql<{
            readonly voice: string
          }>`SELECT voice FROM choir_control.chat_settings WHERE dm = ${dm}`
          return isVoiceMode(row?.voice) ? row.voice : "off"
        }, onDatabase),
        setVoice: Effect.fn("ChatSettings.setVoice")(function* (dm, voice) {
          yield* sql`INSERT INTO choir_control.chat_settings (dm, rich, voice) VALUES (${dm}, false, ${voice})
            ON CONFLICT (dm) DO UPDATE SET voice = excluded.voice`
        }, onDatabase),
        topics: Effect.fn("ChatSettings.topics")(function* (dm) {
          const [row] = yield* sql<{ readonly topics: ReadonlyArray<JobTopic> }>`SELECT topics
            FROM choir_control.chat_settings WHERE dm = ${dm}`
          return row?.topics ?? []
        }, onDatabase),
        setTopics: Effect.fn("ChatSettings.setTopics")(function* (dm, topics) {
          yield* sql`INSERT INTO choir_control.chat_settings (dm, topics) VALUES (${dm}, ${canonicalJson(topics)}::jsonb)
            ON CONFLICT (dm) DO UPDATE SET topics = excluded.topics`
        }, onDatabase)
      })
    })
  )
}
