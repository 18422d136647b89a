/** The job whose question a message in its topic answers. */
import { Effect, Option } from "effect"
import type { ResourceName } from "#schema/Ids.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { ChatSettings } from "#src/choird/chatcommands/ChatSettings.ts"

/** Makes what finds the job whose question a message in its topic answers. */
export const makeAskedInTopic = Effect.gen(function* () {
  const events = yield* EventStore
  const settings = yield* ChatSettings
  return Effect.fnUntraced(function* (dm: ResourceName, thread_id: number | undefined) {
    if (thread_id === undefined) return undefined
    const topic = (yield* databaseDefect(settings.topics(dm))).find((one) => one.thread_id === thread_id)
    if (topic === undefined) return undefined
    const state = yield* Effect.option(databaseDefect(events.state(topic.session_id)))
    const asks = Option.isSome(state) && state.value.cores.get(topic.job_name)?.question !== undefined
    return { job_name: topic.job_name, asks }
  })
})
