/**
 * An agent without a model, in the place of the real one: it speaks the agent API as a program of its own. The file `script` of
 * its workspace, read at each start, says how it starts; messages say what it does then: `crash`, `hang`, `busy` (its event loop stands still for three seconds), `budget`, `rewrite`,
 * `model` (answers with the models it has and the secrets it may have), and anything else is answered with `<epoch>: <text>`.
 */
import { randomBytes } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { type IncomingMessage, request } from "node:http"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { parseArgs } from "node:util"
import type { HeartbeatReply, InitHelloReply } from "#schema/AgentApi.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { ChoirEvent, EventDraft } from "#schema/Event.ts"
import type { SessionId } from "#schema/Ids.ts"
import type { ImageVersionFile } from "#schema/Image.ts"
import type { Signal, UserMessage } from "#schema/Signal.ts"
import { chainEvent, genesis, hex, type Link } from "#src/shared/events/hashChain.ts"

const { values: flags } = parseArgs({ strict: false })
const flag = (name: string) => String(flags[name])
const scriptFile = join(flag("workspace"), "script")
/** `mute`: no hello. `exit`: ends at once; `exit VERSION`: from this image alone. `stubborn`: ignores a stop. */
const script = existsSync(scriptFile) ? readFileSync(scriptFile, "utf8") : ""
const session_id = String(process.env["CHOIR_SESSION_ID"]) as SessionId
const image = JSON.parse(readFileSync(join(flag("choir"), "version.json"), "utf8")) as ImageVersionFile
let token = String(process.env["CHOIR_BOOTSTRAP_TOKEN"])
let requests = 0

const open = (method: string, path: string, body?: unknown): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "x-choir-request-id": `${process.pid}-${++requests}`,
      "x-choir-session-id": session_id
    }
    request({ socketPath: flag("socket"), method, path, headers }, resolve)
      .on("error", reject)
      .end(body === undefined ? undefined : JSON.stringify(body))
  })

const rpc = async <A>(verb: string, body: unknown): Promise<A> => {
  const response = await open("POST", `/rpc/${verb}`, body)
  const chunks: Array<Buffer> = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  if (response.statusCode !== 200) throw new Error(`${verb}: ${response.statusCode} ${text}`)
  return JSON.parse(text) as A
}

const links: Array<Link> = []
interface Settings {
  readonly config_version: number
  readonly config: AgentConfig
}
let settings: Settings | undefined
let epoch = 0
let acked = 0
let heartbeats: NodeJS.Timeout | undefined

const hashAt = (rev: number) => links[rev - 1]?.hash ?? genesis(session_id)

const commit = (draft: EventDraft) => {
  const salt = randomBytes(16).toString("hex")
  const event = { v: 2, rev: links.length + 1, created_at: new Date().toISOString(), salt, ...draft } as ChoirEvent
  links.push(chainEvent(hashAt(links.length), event))
}

let sending: Promise<void> = Promise.resolve()

/** Sends what choird lacks, one request at a time. Anything but OK ends the program, as it ends the real one; a fault of choird is waited out, as the real one does. */
const flush = () => (sending = sending.then(send))

const send = async () => {
  const new_rev = links.length
  const reply = await rpc<HeartbeatReply>("HEARTBEAT", {
    epoch,
    base_rev: acked,
    new_rev,
    hash_prev: hex(hashAt(acked)),
    hash_new: hex(hashAt(new_rev)),
    patches: links.slice(acked).map(({ event }) => event),
    config_version: settings?.config_version ?? 0,
    timestamp: new Date().toISOString()
  }).catch((error: Error) => {
    if (error.message.startsWith("HEARTBEAT: 500")) return undefined
    throw error
  })
  if (reply === undefined) return undefined
  if (reply.action !== "OK") throw new Error(`HEARTBEAT: ${reply.action}`)
  acked = reply.ack_rev
  if (reply.config_version_latest !== settings?.config_version) await configure()
}

const configure = async () => {
  const current_config_version = settings?.config_version ?? 0
  const latest = await rpc<Partial<Settings>>("FETCH_DYNAMIC_CONFIG", { current_config_version })
  if (latest.config !== undefined) settings = latest as Settings
}

/** What the agent knows of its models now. */
const models = async () => {
  const { core_llm, llm, models } = settings?.config ?? ({} as AgentConfig)
  const resources = Object.values(models).flatMap(({ secret }) => secret ?? [])
  const { secrets } = await rpc<{ secrets: Record<string, string> }>("GET_SECRETS", { resources })
  return `${llm} ${core_llm} ${Object.values(secrets).join("+")}`
}

const leave = async (reason: string) => {
  clearInterval(heartbeats)
  await flush()
  await rpc("TERMINATE_SELF", { reason, final_rev: links.length, final_hash: hex(hashAt(links.length)) })
  process.exit(0)
}

const answer = async ({ attachments, dm, inbox_id, text }: UserMessage) => {
  const rev = links.length
  commit({ event_type: "UserMsg", lane: "edge", payload: { inbox_id, dm, text, attachments } } as EventDraft)
  const usage = { input_tokens: 1, output_tokens: 1 }
  const turn = { purpose: "turn", model: "none", tool_calls: [], finish_reason: "stop", usage, latency_ms: 1 }
  const reply = `${epoch}: ${text}`
  const call_id = `${session_id}-${epoch}-${rev + 2}`
  commit({
    event_type: "ModelOutput",
    lane: "edge",
    payload: { ...turn, call_id, text: reply }
  } as unknown as EventDraft)
  const said = { kind: "reply", text: reply, in_reply_to: inbox_id }
  commit({ event_type: "AgentMessage", lane: "edge", payload: said } as EventDraft)
  await flush()
}

const obey = async (signal: Signal) => {
  if (signal.type === "Stop" && script !== "stubborn") return leave("stopped")
  if (signal.type === "ConfigChanged") return configure()
  if (signal.type !== "UserMessage") return undefined
  switch (signal.text) {
    case "crash":
      return process.exit(9)
    case "hang":
      return clearInterval(heartbeats)
    case "busy":
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000)
      return answer(signal)
    case "budget":
      await answer(signal)
      return leave("budget")
    case "model":
      return answer({ ...signal, text: await models() })
    case "later":
      await answer(signal)
      commit({ event_type: "PlanCommitted", lane: "edge", payload: { plan: [1, "two"] } } as unknown as EventDraft)
      return flush()
    case "rewrite":
      await answer(signal)
      links[acked - 1] = { ...links[acked - 1]!, hash: Buffer.alloc(32) }
      return flush()
    default:
      return answer(signal)
  }
}

const main = async () => {
  if (script === "exit" || script === `exit ${image.image_version}`) {
    console.log(JSON.stringify({ level: "FATAL", message: 'words.json: \u001b[31m"bogus"\ncannot be locked' }))
    process.exit(3)
  }
  if (script === "mute") return void setInterval(() => undefined, 1000)
  const { agent_id, image_version, skill_manifest_hash, tool_manifest_hash } = image
  const request = { image_version, agent_version: "0", tool_manifest_hash, skill_manifest_hash }
  const hello = await rpc<InitHelloReply>("INIT_HELLO", { agent_id, session_id, ...request })
  token = hello.lease_token
  epoch = hello.epoch
  settings = hello
  for (const event of hello.tail_events) links.push(chainEvent(hashAt(links.length), event))
  acked = links.length
  console.log(JSON.stringify({ level: "INFO", message: `epoch ${epoch} ${hello.status} at ${acked}` }))
  console.log("plain words")
  heartbeats = setInterval(() => void flush().catch(fail), hello.config.heartbeat_interval_ms)
  await flush()
  const stream = await open("GET", `/events?session_id=${session_id}`)
  for await (const line of createInterface(stream)) {
    if (line.startsWith("data: ")) await obey(JSON.parse(line.slice("data: ".length)) as Signal)
  }
}

const fail = (error: unknown) => {
  console.log(String(error))
  process.exit(1)
}
main().catch(fail)
