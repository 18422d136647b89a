/** A site, choird's browser tool over it, and agents that call the tool. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import type { HostCall, HostOutcome, HostTool } from "#src/choird/hosttools/HostTool.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { ChromiumProgram } from "#src/choird/workers/BrowserProcess.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { PageWaitFactor } from "#src/choird/workers/PageWaitFactor.ts"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { webBrowse } from "#src/choird/workers/webBrowse.ts"
import { chromiumProgram } from "#src/shared/web/chromium.ts"
import { Browsed } from "#src/shared/web/hostQueries.ts"
import { canary, httpServer, layerDialer, PUBLIC_ADDRESS } from "./web.ts"

/** The site, the tool over it, and what must never be reached. */
export class Rig extends Context.Service<
  Rig,
  {
    readonly tool: HostTool
    readonly serve: Map<string, string>
    readonly asked: Array<string>
    /** The names that were looked up through the proxy, with how often. */
    readonly resolved: ReadonlyMap<string, number>
    /** Scripts of service workers that were asked for. */
    readonly workers: Array<string>
    /** Completed when somebody has asked for /never, which is not answered. */
    readonly hanging: Deferred.Deferred<void>
    /** What a path's answer waits for, and what is completed when it is asked for. */
    readonly gates: Map<string, { readonly asked: Deferred.Deferred<void>; readonly open: Deferred.Deferred<void> }>
    readonly worker: BrowserWorker["Service"]
    readonly trap: { readonly port: number; hits(): number }
    /** The site itself, for a browser of a test's own. */
    answer(request: IncomingMessage, response: ServerResponse): void
  }
>()("test/Rig") {}

export const pageOf = (body: string) =>
  `<!doctype html><html><head><title>Echo</title></head><body>${body}</body></html>`

/** A document that asks for another address when it is opened. */
const PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/OpenAction<</S/URI/URI(http://foreign.test/)>>>>endobj
trailer<</Root 1 0 R>>
%%EOF`

/** Of the limits of waits, for a machine that is busy. */
const WAIT_FACTOR = 6

/** Chromium's switch for the sites of the rig. */
export const TAKEN_FOR_SECURE = "--unsafely-treat-insecure-origin-as-secure=http://site.test"

/** @param program a Chromium other than that of this host. */
const rig = Effect.fnUntraced(function* (program: string | undefined) {
  const serve = new Map<string, string>()
  const asked: Array<string> = []
  const resolved = new Map<string, number>()
  const workers: Array<string> = []
  const hanging = yield* Deferred.make<void>()
  const gates: Rig["Service"]["gates"] = new Map()
  const trap = yield* canary
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ""
    asked.push(path)
    if (request.headers["service-worker"] !== undefined) workers.push(path)
    const html = serve.get(path)
    let body = ""
    request.on("data", (chunk: Buffer) => void (body += chunk.toString()))
    request.on("end", () => {
      if (path === "/paper.pdf") response.writeHead(200, { "content-type": "application/pdf" }).end(PDF)
      else if (path === "/download")
        response.writeHead(200, { "content-type": "application/zip", "content-disposition": "attachment" }).end("zip")
      else if (path === "/never") {
        response.writeHead(200, { "content-type": "text/html" }).flushHeaders()
        Deferred.doneUnsafe(hanging, Effect.void)
      } else if (gates.has(path)) {
        const gate = gates.get(path)
        if (gate !== undefined) {
          Deferred.doneUnsafe(gate.asked, Effect.void)
          Effect.runFork(
            Effect.andThen(
              Deferred.await(gate.open),
              Effect.sync(() => response.end("open"))
            )
          )
        }
      } else if (path === "/in") response.writeHead(302, { location: `http://127.0.0.1:${trap.port}/` }).end()
      else {
        const words = request.method === "POST" ? `posted: ${body}` : `asked: ${path}`
        const type = /^\/[\w-]+\.js/u.test(path) ? "text/javascript" : "text/html; charset=utf-8"
        response.writeHead(200, { "content-type": type }).end(html ?? pageOf(`<p>${words}</p>`))
      }
    })
  }
  const port = yield* httpServer(answer)
  const names = {
    "site.test": [[PUBLIC_ADDRESS]],
    "other.test": [[PUBLIC_ADDRESS]],
    "inner.test": [["127.0.0.1"]],
    "rebind.test": [[PUBLIC_ADDRESS], ["127.0.0.1"]]
  }
  const parts = Layer.provideMerge(
    Layer.provide(BrowserWorker.layer, Cgroups.layer),
    Layer.merge(layerDialer({ asked: resolved, names, served: { [PUBLIC_ADDRESS]: port } }), PageReader.layer())
  ).pipe(
    Layer.provide(Layer.succeed(PageWaitFactor, WAIT_FACTOR)),
    Layer.provide(program === undefined ? Layer.empty : Layer.succeed(ChromiumProgram, () => program))
  )
  const context = yield* Layer.build(parts)
  const tool = yield* Effect.provideContext(webBrowse, context)
  return {
    tool,
    worker: Context.get(context, BrowserWorker),
    serve,
    asked,
    workers,
    gates,
    hanging,
    resolved,
    trap,
    answer
  }
})

export const layerRig = Layer.effect(Rig, rig(undefined))

/** A rig whose Chromium takes the sites for ones by https, which a service worker needs. */
export const layerSecureRig = Layer.effect(
  Rig,
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "choir-test-chromium-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
    )
    chmodSync(folder, 0o755)
    const script = join(folder, "chromium")
    const text = `#!/bin/sh\nexec ${chromiumProgram() ?? "chromium"} ${TAKEN_FOR_SECURE} "$@"\n`
    writeFileSync(script, text, { mode: 0o755 })
    return yield* rig(script)
  })
)

let sessions = 0

/** A session's browser, as a lane calls it; a session of its own where none is named. */
export const agent = Effect.fnUntraced(function* (epoch: Scope.Scope, session_id?: SessionId) {
  const { tool } = yield* Rig
  sessions += 1
  const caller: Caller = {
    session_id: session_id ?? SessionId.make(String(sessions).padStart(16, "0")),
    agent_id: AgentId.make("ada"),
    epoch: 1,
    standing: "current"
  }
  const browse = (input: { readonly [key: string]: Schema.Json }, call?: HostCall): Effect.Effect<HostOutcome> =>
    Effect.flatten(tool.prepare(input, caller, epoch, call)).pipe(Effect.orDie)
  // A Chromium that gets no processor may hang at one address. A model then opens it again, and so does this one.
  const again = (input: { readonly [key: string]: Schema.Json }) =>
    Effect.flatMap(browse(input), (outcome) =>
      input["action"] === "open" && JSON.stringify(outcome.output).includes("did not respond in time")
        ? browse(input)
        : Effect.succeed(outcome)
    )
  const seen = (input: { readonly [key: string]: Schema.Json }) =>
    Effect.flatMap(again(input), ({ output, status }) => {
      assert.strictEqual(status, "success", JSON.stringify([input, output]))
      return Effect.orDie(Schema.decodeUnknownEffect(Browsed)(output))
    })
  return { browse, seen, session_id: caller.session_id }
})

/** One agent for all tests of a suite: to start a browser takes a second of a core. It ends with the suite. */
export class OneAgent extends Context.Service<OneAgent, Effect.Success<ReturnType<typeof agent>>>()("test/OneAgent") {
  static readonly layer = Layer.effect(
    OneAgent,
    Effect.flatMap(Effect.scope, (scope) => agent(scope))
  )
}

export const lineOf = (text: string, on: RegExp) =>
  text.split("\n").find((each) => on.test(each) && each.includes("[ref="))

export const refOf = (text: string, on: RegExp): string => {
  const line = lineOf(text, on)
  const ref = /\[ref=((?:f\d+)?e\d+)\]/u.exec(line ?? "")?.[1]
  assert.isDefined(ref, `${String(on)} in\n${text}`)
  return ref ?? ""
}

/** What belongs to the browsers of this process. */
const OWN = `choir-browser-${process.pid}-`
export const chromiums = () =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/u.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(OWN)
    } catch {
      return false
    }
  })
const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith(OWN))

/** Where control groups lie below choird's own, of each hierarchy of this machine. */
const groupParentsHere = () =>
  readFileSync("/proc/self/cgroup", "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, controllers = "", path = ""] = line.split(":")
      return path === "" ? [] : [join("/sys/fs/cgroup", controllers.replace("name=", ""), path)]
    })

const namesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** All that this process and the kernel hold of its browsers. */
export const holdings = () => ({
  processes: chromiums().length,
  folders: folders().length,
  groups: groupParentsHere().flatMap((folder) =>
    namesIn(folder).filter((name) => name.startsWith(`choir-browser${process.pid}-`))
  ).length,
  descriptors: readdirSync("/proc/self/fd").length
})
