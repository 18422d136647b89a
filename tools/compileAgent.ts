/**
 * Last part of the agent's build: writes the program that runs commands without a network, lives one short life of an agent, from HELLO to its goodbye, and keeps what V8 compiled meanwhile.
 * `node tools/compileAgent.ts dist/choir-agent.js`
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"
import { join, resolve } from "node:path"
import { Schema } from "effect"
import type { InitHelloReply } from "#schema/AgentApi.ts"
import { ApprovalsConfig, Budgets, MemoryConfig, Model } from "#schema/Config.ts"
import type { ImageVersionFile } from "#schema/Image.ts"
import { APART, loadProgram } from "#src/shared/program/compiledProgram.ts"
import { apartProgram } from "#src/shared/program/apartProgram.ts"

const LIFE_MS_MAX = 60_000
const MODEL = { provider: "none", model: "none", endpoint: "http://127.0.0.1:9/v1" }
const ZEROS = "0".repeat(64)

const version: typeof ImageVersionFile.Encoded = {
  agent_id: "build",
  image_version: ZEROS.slice(0, 12),
  global_repo_commit: ZEROS,
  agent_repo_commit: ZEROS,
  tool_manifest_hash: ZEROS,
  skill_manifest_hash: ZEROS
}

const hello: typeof InitHelloReply.Encoded = {
  status: "fresh",
  lease_token: "lease",
  epoch: 1,
  resource_bindings: { workspace: "main", llm: "none", core_llm: "none", dm: "me" },
  config_version: 1,
  config: {
    llm: "none",
    core_llm: "none",
    models: { none: Schema.decodeSync(Model)(MODEL) },
    budgets: Schema.decodeSync(Budgets)({}),
    memory: Schema.decodeSync(MemoryConfig)({}),
    approvals: Schema.decodeSync(ApprovalsConfig)({}),
    heartbeat_interval_ms: 5000,
    rate_limit_retry_ms: 1000
  },
  tail_events: [],
  tail_more: false
}

/** Answers of a choird that has nothing to say but that it is time to stop. */
const answers: Readonly<Record<string, (asked: { readonly new_rev?: number }) => unknown>> = {
  INIT_HELLO: () => hello,
  GET_SECRETS: () => ({ secrets: {} }),
  HEARTBEAT: ({ new_rev }) => ({ ack_rev: new_rev, action: "OK", config_version_latest: 1 }),
  REPORT_STATUS: () => ({ ack: true }),
  TERMINATE_SELF: () => ({ ack: true })
}

const pushStop = (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(`data: ${JSON.stringify({ type: "Stop", deadline_ms: 1000 })}\n\n`)
}

const program = resolve(process.argv[2] ?? "")
const apart = apartProgram()
if (apart !== undefined) writeFileSync(program.replace(/\.js$/u, APART), apart, { mode: 0o755 })
const home = mkdtempSync("/tmp/choir-build-")
const socket = join(home, "choird.sock")
writeFileSync(join(home, "version.json"), JSON.stringify(version))

const server = createServer((request, response) => {
  const name = request.url?.split("/").at(-1) ?? ""
  if (name.startsWith("events")) return pushStop(response)
  let body = ""
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk))
  request.on("end", () => response.end(JSON.stringify(answers[name]?.(JSON.parse(body)))))
})
// The agent alone decides when this process ends.
await new Promise<void>((listening) => server.listen(socket, listening).unref())

const agent = loadProgram(program)
process.on("exit", (code) => {
  rmSync(home, { recursive: true, force: true })
  if (code === 0) agent.keep()
  else process.stderr.write(`the agent ended with ${code}; its program is not compiled\n`)
})
setTimeout(() => process.exit(1), LIFE_MS_MAX).unref()
Object.assign(process.env, { AGENT_ID: "build", CHOIR_SESSION_ID: ZEROS.slice(0, 16), CHOIR_BOOTSTRAP_TOKEN: "build" })
process.argv.splice(1, Infinity, program, `--socket=${socket}`, `--workspace=${home}`, `--choir=${home}`)
// What the agent logs is nobody's.
console.log = () => undefined
agent.run()
