/** A database with many events in it, each in a chain that holds. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { EDGE, SessionId } from "#schema/Ids.ts"
import { EVENT_VERSION } from "#schema/Event.ts"
import { insertEvents } from "#src/choird/sessions/storedEvents.ts"
import { chainEvent, genesis, type Link } from "#src/shared/events/hashChain.ts"
import { makeRandom } from "./history.ts"

const BATCH_EVENTS = 250
const SESSION_EVENTS = 20 * BATCH_EVENTS
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

/** A text of about this many characters that compresses like words do. */
const words = (random: () => number, length: number) => {
  let text = ""
  while (text.length < length) text += `${Math.floor(random() * 100_000).toString(36)} `
  return text
}

/** Where a session's log ends. */
interface End {
  readonly rev: number
  readonly hash: Buffer
}

/** Adds a batch of notices to a session's log. */
export const appendNotices = Effect.fnUntraced(function* (session_id: SessionId, end: End, random: () => number) {
  const links: Array<Link> = []
  let { hash } = end
  for (let rev = end.rev + 1; links.length < BATCH_EVENTS; rev += 1) {
    const linked = chainEvent(hash, {
      v: EVENT_VERSION,
      rev,
      event_type: "AgentMessage",
      lane: EDGE,
      payload: { kind: "notice", text: words(random, 1000 + Math.floor(random() * 2000)) },
      created_at: new Date(rev * 1000).toISOString(),
      salt: rev.toString(16).padStart(32, "0")
    })
    hash = linked.hash
    links.push(linked)
  }
  yield* insertEvents(session_id, links, hash)
  const bytes = links.reduce((sum, link) => sum + link.bytes, 0)
  return { rev: end.rev + BATCH_EVENTS, hash, bytes }
})

/** Adds stopped sessions of notices until their events take about so many canonical bytes; answers the sessions and their ends. */
export const fillEvents = Effect.fnUntraced(function* (bytes: number) {
  const sql = yield* SqlClient.SqlClient
  const random = makeRandom(7)
  const sessions: Array<{ readonly session_id: SessionId; readonly end: End }> = []
  let written = 0
  while (written < bytes) {
    const name = Array.from({ length: 16 }, () => ALPHABET[Math.floor(random() * ALPHABET.length)]).join("")
    const session_id = SessionId.make(name)
    yield* sql`INSERT INTO choir_control.sessions (session_id, agent_id, status, resource_bindings)
      VALUES (${session_id}, 'many', 'stopped', '{}')`
    let end: End = { rev: 0, hash: genesis(session_id) }
    while (end.rev < SESSION_EVENTS && written < bytes) {
      const next = yield* appendNotices(session_id, end, random)
      written += next.bytes
      end = next
    }
    sessions.push({ session_id, end })
  }
  return sessions
})
