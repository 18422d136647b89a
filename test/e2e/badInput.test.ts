import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ROOT } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { hang, makeProvider } from "../support/testing/Provider.ts"
import { INBOX_PENDING_MAX } from "#src/choird/queues/Inbox.ts"
import { atFull } from "../support/size.ts"

/** Runs choird on a home until it ends. */
const choirdOn = (home: string) =>
  Effect.promise(async () => {
    const child = spawn(process.execPath, [join(ROOT, "dist/choird.js"), "--home", home], {
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()))
    const [code] = (await once(child, "exit")) as [number | null]
    return { code, output }
  })

const edit = (home: string, change: (config: Record<string, unknown>) => void) =>
  Effect.sync(() => {
    const file = join(home, "config.json")
    const config = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>
    change(config)
    writeFileSync(file, JSON.stringify(config))
  })

const UNREACHABLE = "http://127.0.0.1:9/v1"

describe("bad input", () => {
  it.live("a typo in config.json ends choird with 78 and the path of the key (R57, R59)", () =>
    Effect.gen(function* () {
      const { home } = yield* makeTestInstallation({ endpoint: UNREACHABLE })
      yield* edit(home, (config) => (config["workspces"] = {}))
      const { code, output } = yield* choirdOn(home)
      assert.strictEqual(code, 78)
      assert.include(output, "workspces")
    }).pipe(Effect.scoped)
  )

  it.live("a reference to nothing is told with its path and what there is", () =>
    Effect.gen(function* () {
      const { home } = yield* makeTestInstallation({ endpoint: UNREACHABLE })
      yield* edit(home, (config) => {
        config["agents"] = { demo: { repo: { url: "/x" }, defaults: { workspace: "nowhere", llm: "test" } } }
      })
      const { code, output } = yield* choirdOn(home)
      assert.strictEqual(code, 78)
      assert.include(output, "nowhere")
      assert.include(output, "known: main")
    }).pipe(Effect.scoped)
  )

  it.live("a model that cannot be reached is told as the reply, with what to check", () =>
    Effect.gen(function* () {
      const choir = yield* makeTestInstallation({ endpoint: UNREACHABLE })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })
      const { inbox_id } = yield* choir.send("a", "hello")
      const shown = yield* choir.settled(inbox_id)
      const [reply] = shown.flatMap((event) => (event.type === "message" ? [event.text] : []))
      assert.include(reply, "cannot be reached at http://127.0.0.1:9/v1")
    }).pipe(Effect.scoped)
  )

  it.live("a full queue refuses politely, and everything that was taken stays (R45)", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise(() => hang)
      const choir = yield* makeTestInstallation({ endpoint: provider.endpoint })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })
      const sent = yield* Effect.forEach(
        Array.from({ length: INBOX_PENDING_MAX + 5 }, (_, index) => index),
        (index) => Effect.result(choir.send(`q-${index}`, `message ${index}`)),
        { concurrency: 4 }
      )
      const refused = sent.filter(({ _tag }) => _tag === "Failure")
      assert.isAtLeast(refused.length, 4)
      assert.isAtMost(refused.length, 5)
      const [first] = refused
      assert.include(String(first?._tag === "Failure" ? first.failure : ""), "wait")
    }).pipe(Effect.scoped)
  )

  atFull(it.live)("an agent whose model secret has no value does not start, and says which", () =>
    Effect.gen(function* () {
      const choir = yield* makeTestInstallation({ endpoint: UNREACHABLE })
      yield* edit(choir.home, (config) => {
        config["models"] = { test: { provider: "x", model: "x", endpoint: UNREACHABLE, secret: "missing-key" } }
      })
      yield* choir.start
      yield* choir.build
      const started = yield* Effect.flip(choir.api.agents.start({ params: choir.params, payload: {} }))
      assert.include(String(started), "missing-key")
    }).pipe(Effect.scoped)
  )
})
