/**
 * A whole Choir in a temporary home: real processes from the bundles, real sockets, a real database; only the provider is a
 * double. Used where it matters that processes really die.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Layer, Option, Schedule, Schema, Stream } from "effect"
import { HttpApiClient } from "effect/http-api"
import { AgentId, type InboxId, type SessionId } from "#schema/Ids.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { isPrintedEvent, type PrintedEvent } from "#schema/SessionsApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { agentBelow } from "#tools/Programs.ts"
import { CHOIRD_ENVIRONMENT, CHOIRD_NODE_FLAGS } from "#src/choirctl/daemon/choirdProgram.ts"
import { createRepo } from "#src/shared/git/scaffold.ts"
import { containerName, installationOf } from "#src/shared/docker/dockerInstallation.ts"
import { layerSocketClient } from "#src/shared/wire/sockets.ts"
import { agentInside, removeImagesOf } from "./dockerImage.ts"
import { reachable } from "./reachable.ts"

export const ROOT = join(import.meta.dirname, "../..")
export const AGENT = AgentId.make("demo")

/** choird did not come up, with what it printed. */
export class NotReady extends Schema.TaggedError<NotReady>()("NotReady", { output: Schema.String }) {
  override get message() {
    return `choird did not become ready:\n${this.output}`
  }
}

/** An external tool whose effect can be counted: it appends its call id to `ledger` in the workspace, and goes on for a minute for a note that says `slow`. */
const LEDGER_TOOL = {
  llm: {
    name: "ledger.append",
    description: "Append a line to the ledger",
    input_schema: { type: "object", properties: { note: { type: "string" } } }
  },
  runtime: { exec_path: "ledger.append", timeout_ms: 90_000, effect: "external" }
}
const LEDGER_SCRIPT = `#!/bin/sh
echo "$CHOIR_CALL_ID" >> ledger
case "$(cat)" in *slow*) sleep 60 ;; esac
sleep 0.02
echo '{"status":"success","summary":"appended"}'
`

/** A tool whose results come from strangers, so that they taint the lane that reads them (D31). */
const PAGE_TOOL = {
  llm: { name: "page.read", description: "Read a page of the web", input_schema: { type: "object" } },
  runtime: { exec_path: "page.read", effect: "none", untrusted: true }
}
const PAGE_SCRIPT = `#!/bin/sh
echo '{"status":"success","summary":"read a page","output":"hello"}'
`

type More = Readonly<Record<string, Schema.Json>>

export interface InstallationOptions {
  /** A home that is there already and is used as it is, in the place of a new one. */
  readonly home?: string
  /** The endpoint of the provider. */
  readonly endpoint: string
  /** A runtime of the host, or the socket of an engine. */
  readonly runtime?: "sandbox" | "process" | { readonly docker_socket: string }
  readonly postgres?: Schema.Json
  readonly secrets?: Readonly<Record<string, string>>
  readonly config?: More | ((place: { readonly endpoint: string; readonly home: string }) => More)
  /** Further tools of the agent, each a manifest and a program. */
  readonly tools?: ReadonlyArray<readonly [name: string, manifest: Schema.Json, program: string]>
  /** What choird's command line says beside its home. */
  readonly flags?: ReadonlyArray<string>
  /** Dockerfile.base of the global repository, in the place of the starter's. */
  readonly base?: string
  /** Puts a database into the home; without it choird makes one and migrates it. */
  readonly database?: (home: string) => Effect.Effect<void>
  /** The folder of the bundles, `dist` by default. */
  readonly programs?: string
  /** A program and its arguments that run choird's command line somewhere else, such as in namespaces. */
  readonly within?: ReadonlyArray<string>
  /** What choird's environment has beside PATH and HOME. */
  readonly env?: Readonly<Record<string, string>>
}

/** The client lives as long as the scope does, and its connections with it. */
export const operator = Effect.fnUntraced(function* (home: string) {
  const http = yield* Layer.build(layerSocketClient(join(home, "socks/choird.sock")))
  return yield* Effect.provideContext(HttpApiClient.make(OperatorApi, { baseUrl: "http://choird" }), http)
})
/** A choird process and what it printed. */
export interface Choird {
  readonly pid: number
  readonly exited: Effect.Effect<number | string>
  signal(signal: NodeJS.Signals): Effect.Effect<void>
  /** The pid of the running agent itself, not of what contains it. */
  readonly agent: Effect.Effect<Option.Option<number>>
}

const runtimeOf = (runtime: InstallationOptions["runtime"] = "process") =>
  typeof runtime === "string" ? { type: runtime } : { type: "docker", network: "open", ...runtime }

/** Repositories that this process has made, by what their commit has: git runs seven programs for one. */
const made = new Map<string, string>()
process.once("exit", () => {
  for (const folder of made.values()) rmSync(folder, { recursive: true, force: true })
})

/** {@link createRepo}, or a copy of one with the same contents. */
const repoOf = Effect.fnUntraced(function* (place: string, contents: ReadonlyArray<unknown>, starter: string) {
  const key = JSON.stringify(contents)
  const known = made.get(key)
  if (known !== undefined) return cpSync(known, place, { recursive: true })
  yield* createRepo(place, starter)
  const kept = mkdtempSync(join(tmpdir(), "choir-repo-"))
  cpSync(place, kept, { recursive: true })
  made.set(key, kept)
})

const writeHome = Effect.fnUntraced(function* (home: string, options: InstallationOptions) {
  const tools = [
    ["ledger.append", LEDGER_TOOL, LEDGER_SCRIPT],
    ["page.read", PAGE_TOOL, PAGE_SCRIPT],
    ...(options.tools ?? [])
  ] as const
  const folders = ["workspaces/main", "starter/agent"].map((name) => join(home, name))
  for (const folder of folders) mkdirSync(folder, { recursive: true })
  chmodSync(home, 0o700)
  if (options.database !== undefined) yield* options.database(home)
  const starter = join(home, "starter/agent")
  cpSync(join(ROOT, "docker/agent-starter"), starter, { recursive: true })
  for (const [name, manifest, program] of tools) {
    writeFileSync(join(starter, `tools/${name}.json`), JSON.stringify(manifest))
    writeFileSync(join(starter, "tools", name), program, { mode: 0o755 })
  }
  const global = join(home, "starter/global")
  cpSync(join(ROOT, "docker/starter"), global, { recursive: true })
  if (options.base !== undefined) writeFileSync(join(global, "Dockerfile.base"), options.base)
  yield* repoOf(join(home, "sources/global"), ["global", options.base], global)
  yield* repoOf(join(home, "sources/agent"), ["agent", tools], starter)
  const config = {
    global_repo: { url: join(home, "sources/global") },
    workspaces: { main: { path: join(home, "workspaces/main") } },
    models: { test: { provider: "test", model: "offline-model", endpoint: options.endpoint, temperature: 0 } },
    gateways: { terminal: { type: "console" } },
    dms: { me: { gateway: "terminal", user_id: "local", admin: true } },
    agents: {
      [AGENT]: { repo: { url: join(home, "sources/agent") }, defaults: { workspace: "main", llm: "test", dm: "me" } }
    },
    runtime: runtimeOf(options.runtime),
    ...(options.postgres === undefined ? {} : { postgres: options.postgres }),
    ...(typeof options.config === "function" ? options.config({ endpoint: options.endpoint, home }) : options.config)
  }
  writeFileSync(join(home, "config.json"), JSON.stringify(config, undefined, 2), { mode: 0o600 })
  writeFileSync(join(home, "secrets.json"), JSON.stringify(options.secrets ?? {}), { mode: 0o600 })
})

/** A home with one agent, `demo`, and a choird that can be started, killed and started again. */
export const makeInstallation = Effect.fnUntraced(function* (options: InstallationOptions) {
  const home = yield* Effect.acquireRelease(
    Effect.sync(() => options.home ?? mkdtempSync(join(tmpdir(), "choir-home-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const { runtime } = options
  const endpoint = typeof runtime === "object" ? yield* reachable(options.endpoint) : options.endpoint
  if (typeof runtime === "object") {
    const images = Effect.sync(() => removeImagesOf(runtime.docker_socket, AGENT, installationOf(home).id))
    yield* Effect.addFinalizer(() => images)
  }
  if (options.home === undefined)
    yield* writeHome(home, { ...options, endpoint }).pipe(Effect.provide(NodeServices.layer))
  const api = yield* operator(home)
  const runningAgent = (choird: number) =>
    typeof runtime === "object"
      ? agentInside(runtime.docker_socket, containerName(installationOf(home), AGENT))
      : agentBelow(choird)

  const spawned = (child: ChildProcess, exited: Deferred.Deferred<number | string>): Choird => ({
    pid: child.pid ?? 0,
    exited: Deferred.await(exited),
    signal: (signal) => Effect.sync(() => void child.kill(signal)),
    agent: Effect.sync(() => Option.fromNullishOr(runningAgent(child.pid ?? 0)))
  })

  /** Starts choird and waits until its operator API answers. */
  const start = Effect.gen(function* () {
    let output = ""
    const exited = yield* Deferred.make<number | string>()
    const program = join(options.programs ?? join(ROOT, "dist"), "choird.js")
    const line = [process.execPath, ...CHOIRD_NODE_FLAGS, program, "--home", home, ...(options.flags ?? [])]
    const [first = "", ...rest] = [...(options.within ?? []), ...line]
    const child = spawn(first, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"],
        NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
        ...CHOIRD_ENVIRONMENT,
        ...options.env
      }
    })
    const keep = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-20_000)
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.on("exit", (code, signal) => Deferred.doneUnsafe(exited, Effect.succeed(signal ?? code ?? 0)))
    const choird = spawned(child, exited)
    yield* Effect.addFinalizer(() =>
      Effect.andThen(choird.signal("SIGTERM"), choird.exited).pipe(
        Effect.timeoutOrElse({
          duration: "10 seconds",
          orElse: () => Effect.andThen(choird.signal("SIGKILL"), choird.exited)
        })
      )
    )
    const answers = Effect.retry(
      api.system.status(),
      Schedule.max([Schedule.spaced("20 millis"), Schedule.recurs(1500)])
    )
    const gaveUp = Effect.flatMap(Deferred.await(exited), () => Effect.fail("exited"))
    yield* Effect.mapError(Effect.raceFirst(answers, gaveUp), () => new NotReady({ output }))
    return choird
  })

  const params = { id: AGENT }
  const build = Stream.unwrap(api.agents.build({ params, payload: {} })).pipe(
    Stream.runForEach((progress) =>
      progress.type === "failed" ? Effect.die(new Error(`the build failed: ${progress.error.message}`)) : Effect.void
    )
  )
  const send = (client_id: string, text: string) => api.chat.send({ params, payload: { client_id, text } })
  const events = (session_id: SessionId) =>
    Stream.unwrap(api.sessions.events({ params: { id: session_id }, query: {} })).pipe(
      Stream.filter(isPrintedEvent),
      Stream.runCollect,
      Effect.map((all): ReadonlyArray<PrintedEvent> => all)
    )
  /** What a console shows, each message once, until something fits. */
  const watch = (fits: (event: ChatEvent) => boolean) =>
    Stream.unwrap(api.chat.stream({ params })).pipe(
      Stream.map(({ data }) => data),
      Stream.tap((event) =>
        event.type === "message" ? api.chat.ack({ params, payload: { outbox_ids: [event.outbox_id] } }) : Effect.void
      ),
      Stream.takeUntil(fits),
      Stream.runCollect
    )
  const settled = (inbox_id: InboxId) => watch((event) => event.type === "settled" && event.inbox_id === inbox_id)
  return { home, workspace: join(home, "workspaces/main"), api, start, build, send, events, watch, settled, params }
})
