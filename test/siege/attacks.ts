/** The attacks of a hostile program on choird by its own socket, with its own valid token. Each is called again as long as it may attack. */
import { randomBytes, randomUUID } from "node:crypto"
import type { EventDraft } from "#schema/Event.ts"
import { mutate, randomOf } from "../fuzz/requests.ts"
import { beatOf, bootstrap, commit, count, dial, emptyBeat, hello, post, session_id } from "./peer.ts"

/** One burst; returns when it is over. */
export type Attack = () => Promise<unknown>

/** Requests at once, which leaves the heartbeat a connection. */
const AT_ONCE = 6
const KIB = 1024
const MIB = 1024 * KIB

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const together = (work: (index: number) => Promise<unknown>) =>
  Promise.all(Array.from({ length: AT_ONCE }, (_, index) => work(index)))

const notice = (text: string): EventDraft =>
  ({ event_type: "AgentMessage", lane: "edge", payload: { kind: "notice", text } }) as EventDraft
const injected = (content: string): EventDraft =>
  ({
    event_type: "InjectedInstruction",
    lane: "edge",
    payload: { target: "edge", source: "control_plane", content }
  }) as EventDraft

const status = {
  lane: "edge",
  state: "EDGE_IDLE",
  skill: "s".repeat(200),
  budget_remaining: { tokens: 1, tool_calls: 1 }
}

/** Legal requests, as many as the connections carry. */
const heartbeats: Attack = () =>
  together(async (index) => {
    if (index < 4) await post("HEARTBEAT", emptyBeat())
    else if (index === 4) await post("REPORT_STATUS", status)
    else await post("FETCH_DYNAMIC_CONFIG", { current_config_version: 0 })
  })

/** The largest events that a session may commit, one heartbeat after the other. */
const events: Attack = () => {
  const large = randomBytes(185 * KIB).toString("hex")
  return commit([injected(large), injected(large)])
}

/** A stored heartbeat with the largest body, sent again and again. */
let repeated: unknown
const replays: Attack = async () => {
  if (repeated === undefined) {
    const { heartbeat, stored } = beatOf([injected("x".repeat(370 * KIB)), injected("y".repeat(370 * KIB))])
    if ((await post("HEARTBEAT", heartbeat))?.status === 200) {
      stored()
      repeated = JSON.stringify(heartbeat)
    } else return pause(100)
  }
  return together(() => post("HEARTBEAT", repeated))
}

/** Texts in the shape of choird's cards, each a message to a person. */
const CARD = `◆ choird\napproval 1 · tool "weather" · effect none\n/approve 1 cf410148\n\u200b\u202e`
const cards: Attack = () => commit(Array.from({ length: 20 }, (_, index) => notice(`${CARD}${index}`)))

const random = randomOf(process.pid)
const malformed = () => {
  const body = JSON.stringify(emptyBeat())
  const head = [
    "POST /rpc/HEARTBEAT HTTP/1.1",
    "host: localhost",
    `authorization: Bearer ${bootstrap}`,
    `x-choir-session-id: ${session_id}`
  ]
  return mutate(random, [...head, `content-length: ${body.length}`, "", body].join("\r\n"))
}
const DEEP = "[".repeat(200_000) + "]".repeat(200_000)

/** Mutated requests, bodies beyond the limit, and bodies that are nested without end. */
const bodies: Attack = () =>
  together(async (index) => {
    if (index === 0) return post("HEARTBEAT", `{"epoch":${DEEP}}`)
    if (index === 1) return post("HEARTBEAT", Buffer.alloc(MIB - 1, " "))
    if (index === 2) return post("REQUEST_APPROVAL", Buffer.alloc(4 * MIB, 0x7b))
    const connection = dial(malformed())
    await pause(5)
    return connection.destroy()
  })

/** Requests for approvals, host tools and secrets that choird has to look up and refuse. */
const requests: Attack = () =>
  together((index) => {
    const call_id = `${session_id}-1-${random(1000)}-0`
    if (index < 3)
      return post("REQUEST_APPROVAL", {
        request_type: index === 0 ? "confirm_tool" : "tool",
        payload: { reason: "\u200b".repeat(30 * KIB), manifest: { pattern: "^(a+)+$" } },
        call_id
      })
    if (index < 5) return post("EXECUTE_HOST_TOOL", { tool_name: "choir.web.browse", call_id, input: {} })
    return post("GET_SECRETS", { resources: ["honest-key", "hostile-key"] })
  })

/** Tokens that were used, made up, or are of other sessions, and epochs that never were. */
const tokens: Attack = () =>
  together((index) => {
    const forged = randomBytes(32).toString("base64url")
    if (index === 0) return post("INIT_HELLO", hello, { token: bootstrap })
    if (index === 1) return post("HEARTBEAT", emptyBeat(), { token: forged })
    if (index === 2) return post("HEARTBEAT", emptyBeat(), { session: "0123456789abcdef" })
    if (index === 3) return post("GET_SECRETS", { resources: ["honest-key"] }, { token: forged })
    if (index === 4) return post("TERMINATE_SELF", { reason: "x", final_rev: 9, final_hash: "0".repeat(64) })
    return post("HEARTBEAT", { ...emptyBeat(), epoch: 0 }, { id: "same" })
  })

/** Heads that come a byte at a time, bodies that never end, streams that are half closed, and answers that nobody reads. */
const slow: Attack = async () => {
  const head = `POST /rpc/HEARTBEAT HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${bootstrap}\r\n`
  const all = Array.from({ length: 12 }, (_, index) => {
    if (index % 3 === 0) return dial(head)
    if (index % 3 === 1) return dial(`${head}content-type: application/json\r\ncontent-length: 1000000\r\n\r\n{`)
    return dial("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n", (connection) => connection.end())
  })
  for (let drop = 0; drop < 20; drop++) {
    await pause(50)
    for (const connection of all) if (connection.writable) connection.write("x")
  }
  for (const connection of all) connection.destroy()
}

/** Connections that are opened and left, as fast as they come. */
const connections: Attack = () =>
  together(async () => {
    const connection = dial("")
    await new Promise((resolve) => connection.once("close", resolve).once("connect", resolve))
    connection.destroy()
  })

/** Lines on its own output, which choird reads and keeps. */
const output: Attack = async () => {
  for (let line = 0; line < 200; line++)
    process.stdout.write(`{"level":"FATAL","message":"${"\u200b".repeat(4 * KIB)}"}\n`)
  count("lines")
  await pause(5)
}

/** An end without a goodbye, at every start. */
const crashes: Attack = () => process.exit(9)

/** Another history under the same revisions, once: the session freezes. */
const rewrite: Attack = async () => {
  await commit([injected("first")])
  const { heartbeat } = beatOf([injected("second")])
  await post("HEARTBEAT", { ...heartbeat, hash_prev: "0".repeat(64) }, { id: randomUUID() })
  await pause(1000)
}

export const ATTACKS: Readonly<Record<string, Attack>> = {
  heartbeats,
  events,
  replays,
  cards,
  bodies,
  requests,
  tokens,
  slow,
  connections,
  output,
  crashes,
  rewrite
}
