/** A site, choird's browser tool over it, and agents that call the tool. */
import type { IncomingMessage, ServerResponse } from "node:http"
import { readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { assert } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import { AgentId, SessionId } from "#schema/Ids.ts"
import type { HostCall, HostOutcome, HostTool } from "#src/choird/hosttools/HostTool.ts"
import { Cgroups } from "#src/choird/runtime/Cgroups.ts"
import { BrowserWorker } from "#src/choird/workers/BrowserWorker.ts"
import { PagePatience } from "#src/choird/workers/PagePatience.ts"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { webBrowse } from "#src/choird/workers/webBrowse.ts"
import { Browsed } from "#src/shared/web/hostQueries.ts"
import { canary, httpServer, layerDialer, PUBLIC_ADDRESS } from "./web.ts"

/** The site, the tool over it, and what must never be reached. */
export class Rig extends Context.Service<
  Rig,
  {
    readonly tool: HostTool
    readonly serve: Map<string, string>
    readonly asked: Array<string>
    /** Completed when somebody has asked for /never, which is not answered. */
    readonly hanging: Deferred.Deferred<void>
    /** What a path's answer waits for, and what is completed when it is asked for. */
    readonly gates: Map<string, { readonly asked: Deferred.Deferred<void>; readonly open: Deferred.Deferred<void> }>
    readonly worker: BrowserWorker["Service"]
    readonly trap: { readonly port: number; hits(): number }
  }
>()("test/Rig") {}

export const pageOf = (body: string) =>
  `<!doctype html><html><head><title>Echo</title></head><body>${body}</body></html>`

const rig = Effect.gen(function* () {
  const serve = new Map<string, string>()
  const asked: Array<string> = []
  const hanging = yield* Deferred.make<void>()
  const gates: Rig["Service"]["gates"] = new Map()
  const trap = yield* canary
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ""
    asked.push(path)
    const html = serve.get(path)
    let body = ""
    request.on("data", (chunk: Buffer) => void (body += chunk.toString()))
    request.on("end", () => {
      if (path === "/download")
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
        response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(html ?? pageOf(`<p>${words}</p>`))
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
    Layer.merge(layerDialer({ names, served: { [PUBLIC_ADDRESS]: port } }), PageReader.layer())
  ).pipe(Layer.provide(Layer.succeed(PagePatience, 20)))
  const context = yield* Layer.build(parts)
  const tool = yield* Effect.provideContext(webBrowse, context)
  return { tool, worker: Context.get(context, BrowserWorker), serve, asked, gates, hanging, trap }
})

export const layerRig = Layer.effect(Rig, rig)

let sessions = 0

/** A session's browser, as a lane calls it. */
export const agent = Effect.fnUntraced(function* (epoch: Scope.Scope) {
  const { tool } = yield* Rig
  sessions += 1
  const caller: Caller = {
    session_id: SessionId.make(String(sessions).padStart(16, "0")),
    agent_id: AgentId.make("ada"),
    epoch: 1,
    standing: "current"
  }
  const browse = (input: { readonly [key: string]: Schema.Json }, call?: HostCall): Effect.Effect<HostOutcome> =>
    Effect.flatten(tool.prepare(input, caller, epoch, call)).pipe(Effect.orDie)
  const seen = (input: { readonly [key: string]: Schema.Json }) =>
    Effect.flatMap(browse(input), ({ output, status }) => {
      assert.strictEqual(status, "success", JSON.stringify([input, output]))
      return Effect.orDie(Schema.decodeUnknownEffect(Browsed)(output))
    })
  return { browse, seen, session_id: caller.session_id }
})
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
export const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith(OWN))
