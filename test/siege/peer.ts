/** A hostile program's end of the agents' API: plain requests on its socket, a chain of its own, and counts of what it was answered. */
import { randomBytes, randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import { Agent, type IncomingMessage, request } from "node:http"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import { parseArgs } from "node:util"
import type { HeartbeatReply, InitHelloReply } from "#schema/AgentApi.ts"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import type { ImageVersionFile } from "#schema/Image.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { CANARY } from "./places.ts"

const { values: flags } = parseArgs({ strict: false })
const flag = (name: string) => String(flags[name])

export const workspace = flag("workspace")
const socket = flag("socket")
export const session_id = String(process.env["CHOIR_SESSION_ID"]) as SessionId
export const bootstrap = String(process.env["CHOIR_BOOTSTRAP_TOKEN"])
const image = JSON.parse(readFileSync(join(flag("choir"), "version.json"), "utf8")) as ImageVersionFile

/** Answers by their status or the connection's error, and what should never have been read. */
export const counts: Record<string, number> = {}
export const seen = new Set<string>()
export const count = (what: string | number) => {
  counts[what] = (counts[what] ?? 0) + 1
}

/** One less than the connections that a session may have, since its push stream has one. */
const keptOpen = new Agent({ keepAlive: true, maxSockets: 7 })

export interface Asked {
  readonly token?: string
  readonly session?: string
  readonly id?: string
  readonly method?: string
}

let lease = bootstrap
export const hello = {
  agent_id: image.agent_id,
  session_id,
  image_version: image.image_version,
  agent_version: "0",
  tool_manifest_hash: image.tool_manifest_hash,
  skill_manifest_hash: image.skill_manifest_hash
}

const openRequest = (path: string, body: string | Buffer | undefined, { id, method, session, token }: Asked) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token ?? lease}`,
      "content-type": "application/json",
      "x-choir-request-id": id ?? randomUUID(),
      "x-choir-session-id": session ?? session_id
    }
    const options = { socketPath: socket, method: method ?? "POST", path, headers, agent: keptOpen }
    request(options, resolve).on("error", reject).end(body)
  })

/** One request; nothing when the connection broke. */
export const post = async (verb: string, body: unknown, asked: Asked = {}) => {
  try {
    const raw = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    const response = await openRequest(`/rpc/${verb}`, raw, asked)
    const chunks: Array<Buffer> = []
    for await (const chunk of response) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    for (const [found] of text.matchAll(CANARY)) seen.add(found)
    count(response.statusCode ?? 0)
    return { status: response.statusCode ?? 0, text }
  } catch (error) {
    count((error as NodeJS.ErrnoException).code ?? "error")
    return undefined
  }
}

let epoch = 0
let acked = 0
let head = genesis(session_id)

/** Says hello as the image's agent does. */
export const begin = async (): Promise<number> => {
  const answer = await post("INIT_HELLO", hello)
  if (answer?.status !== 200) throw new Error(`INIT_HELLO: ${answer?.status} ${answer?.text}`)
  let reply = JSON.parse(answer.text) as InitHelloReply
  lease = reply.lease_token
  epoch = reply.epoch
  for (;;) {
    for (const event of reply.tail_events) {
      head = chainEvent(head, event).hash
      acked = event.rev
    }
    if (!reply.tail_more) return reply.config.heartbeat_interval_ms
    const next = await post("INIT_HELLO", { ...hello, tail_from: acked + 1 })
    if (next?.status !== 200) throw new Error(`tail: ${next?.status} ${next?.text}`)
    reply = JSON.parse(next.text) as InitHelloReply
  }
}

const beat = (patches: ReadonlyArray<ChoirEvent>, hash_new: Buffer) => ({
  epoch,
  base_rev: acked,
  new_rev: acked + patches.length,
  hash_prev: hex(head),
  hash_new: hex(hash_new),
  patches,
  config_version: 1,
  timestamp: new Date().toISOString()
})

/** A heartbeat that brings nothing. */
export const emptyBeat = () => beat([], head)

/** A heartbeat with these events, and what makes them the log's newest ones. */
export const beatOf = (drafts: ReadonlyArray<EventDraft>) => {
  let hash = head
  const patches = drafts.map((draft, index) => {
    const salt = randomBytes(16).toString("hex")
    const place = { v: 2, rev: acked + 1 + index, created_at: new Date().toISOString(), salt }
    const event = { ...place, ...draft } as ChoirEvent
    hash = chainEvent(hash, event).hash
    return event
  })
  const heartbeat = beat(patches, hash)
  const stored = () => {
    acked = heartbeat.new_rev
    head = hash
  }
  return { heartbeat, stored }
}

/** Commits events, one heartbeat at a time; whether choird has them. */
export const commit = async (drafts: ReadonlyArray<EventDraft>): Promise<boolean> => {
  const { heartbeat, stored } = beatOf(drafts)
  const answer = await post("HEARTBEAT", heartbeat)
  if (answer?.status !== 200) return false
  const { action } = JSON.parse(answer.text) as HeartbeatReply
  count(action)
  if (action === "FENCED" || action === "CONFLICT") process.exit(1)
  if (action !== "OK") return false
  stored()
  return true
}

/** The push stream, which keeps the agent from being taken for deaf; a stop ends the program. */
export const listen = async (): Promise<void> => {
  const stream = await openRequest(`/events?session_id=${session_id}`, undefined, { method: "GET" })
  stream.on("error", () => undefined)
  for await (const chunk of stream) if (String(chunk).includes('"type":"Stop"')) process.exit(0)
}

/** Bytes on a connection of their own, which is left as it is. */
export const dial = (text: string, opened?: (connection: Socket) => void): Socket => {
  const connection = connect({ path: socket, allowHalfOpen: true }, () => opened?.(connection))
  connection.on("error", (error: NodeJS.ErrnoException) => count(error.code ?? "error"))
  connection.on("data", (chunk) => {
    count("bytes")
    for (const [found] of String(chunk).matchAll(CANARY)) seen.add(found)
  })
  connection.on("close", () => count("closed"))
  connection.write(text)
  return connection
}
