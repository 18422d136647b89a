/** The process of the local model: with programs of the test's own, which do what its packages never should, and with the model itself. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type AddressInfo } from "node:net"
import { createRequire } from "node:module"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { LOCAL_EMBEDDING } from "#schema/Embedding.ts"
import { EmbeddingProcess, type ProcessFailure } from "#src/choird/memory/EmbeddingProcess.ts"
import { builtPath, builtProgram } from "#src/choird/runtime/closedProcess.ts"
import { temporaryFolder } from "../../support/gitRepo.ts"
import { leaveOut } from "../../support/packages.ts"

type Result = ReadonlyArray<Float32Array> | ProcessFailure

/** Answers each order with what `answer`, the source of an expression of `text`, is, once it has waited for it. */
const programOf = (answer: string) => `import { readdirSync, writeFileSync, existsSync } from "node:fs"
import { connect } from "node:net"
import { createInterface } from "node:readline"
const say = (message) => process.stdout.write((typeof message === "string" ? message : JSON.stringify(message)) + "\\n")
const vector = (length, value = 1) => ({ _tag: "Vector", values: Array.from({ length }, () => value) })
const refused = (problem) => ({ _tag: "Refused", problem: String(problem) })
const coded = (act) => { try { return String(act()) } catch ({ code }) { return code } }
const dialled = (port) => new Promise((resolve) => {
  connect(port, "127.0.0.1", () => resolve("connected")).on("error", ({ code }) => resolve(code))
})
say({ _tag: "Ready" })
for await (const line of createInterface(process.stdin)) {
  const { text } = JSON.parse(line)
  say(await (${answer}))
}
`

const processOf = Effect.fnUntraced(function* (
  answer: string,
  options: { readonly crashWindowMs?: number; readonly textMs?: number } = {}
) {
  const program = join(yield* temporaryFolder, "model.mjs")
  writeFileSync(program, programOf(answer), { mode: 0o644 })
  return yield* running(new EmbeddingProcess({ program, ...options }))
})

const running = (own: EmbeddingProcess) =>
  Effect.acquireRelease(Effect.succeed(own), (own) => Effect.promise(() => own.close()))

const embed = (own: EmbeddingProcess, ...texts: ReadonlyArray<string>) =>
  Effect.callback<Result>((resume) => {
    const cancel = own.embed(texts, (result) => resume(Effect.succeed(result)))
    return Effect.sync(cancel)
  })

const listening = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly hits: () => number; readonly close: () => void }>((resume) => {
    let hits = 0
    const server = createServer((socket) => {
      hits += 1
      socket.destroy()
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed({ port, hits: () => hits, close: () => void server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const isOrdinary =
  process.getuid?.() !== 0 &&
  leaveOut("the network of the local model's process", "this is an ordinary user, whose walls are bubblewrap's") !== ""

const { dimensions } = LOCAL_EMBEDDING

describe("the process of the local model", () => {
  it.live.skipIf(isOrdinary)("reaches no server of this host", () =>
    Effect.gen(function* () {
      const { hits, port } = yield* listening
      const own = yield* processOf("dialled(Number(text)).then(refused)")
      const answer = yield* embed(own, String(port))
      assert.include(["ECONNREFUSED", "ENETUNREACH"], (answer as ProcessFailure).problem)
      assert.strictEqual(hits(), 0)
    }).pipe(Effect.scoped)
  )

  it.live("has no environment, reads the model's files alone, and writes none of them", () =>
    Effect.gen(function* () {
      const own = yield* processOf(`refused(JSON.stringify({
        env: Object.keys(process.env).filter((name) => name !== "PATH" && name !== "PWD"),
        files: coded(() => readdirSync(process.argv[2]).includes("model.json")),
        written: coded(() => writeFileSync(process.argv[2] + "/model.json", "")),
        home: coded(() => readdirSync(text))
      }))`)
      const { problem } = (yield* embed(own, import.meta.dirname)) as ProcessFailure
      const seen = JSON.parse(problem) as object
      assert.deepStrictEqual(seen, { env: [], files: "true", written: "ERR_ACCESS_DENIED", home: "ERR_ACCESS_DENIED" })
      assert.include(readdirSync(builtPath("embedding-model")), "model.json")
    }).pipe(Effect.scoped)
  )

  it.live.each([
    ["a vector of another length", `vector(${dimensions - 1})`],
    ["a vector that is too long", `vector(${dimensions + 1})`],
    ["a number that is infinite", `'{"_tag":"Vector","values":[' + Array(${dimensions}).fill("1e999") + ']}'`],
    ["something other than a number", `vector(${dimensions}, "1")`],
    ["a line other than a report", `"Hello"`],
    ["a problem of a thousand characters", `refused("x".repeat(1000))`],
    ["a line without an end", `"x".repeat(100_000)`]
  ])("is ended for %s, and the text counts as one that it cannot embed", ([, answer]) =>
    Effect.gen(function* () {
      const own = yield* processOf(`text === "fine" ? vector(${dimensions}) : ${answer}`)
      const failure = (yield* embed(own, "odd")) as ProcessFailure
      assert.strictEqual(failure.scope, "texts")
      assert.match(failure.problem, /^it sent (?:something other than a report|too long a report)$/u)
      const [vector] = (yield* embed(own, "fine")) as ReadonlyArray<Float32Array>
      assert.strictEqual(vector?.length, dimensions)
    }).pipe(Effect.scoped)
  )

  it.live("is ended when a text takes too long, and others get their vectors", () =>
    Effect.gen(function* () {
      const own = yield* processOf(`text === "fine" ? vector(${dimensions}) : new Promise(() => {})`, { textMs: 2000 })
      const odd = yield* embed(own, "odd", "fine")
      assert.deepStrictEqual(odd, { scope: "texts", problem: "it takes too long over a text" })
      assert.lengthOf((yield* embed(own, "fine")) as ReadonlyArray<Float32Array>, 1)
    }).pipe(Effect.scoped)
  )

  it.live("starts again when it dies, but no more than six times in a while, whatever the texts", () =>
    Effect.gen(function* () {
      const own = yield* processOf("process.exit(1)")
      const answers = yield* Effect.forEach(["a", "b", "c", "d"], (text) => embed(own, text))
      const dead: ProcessFailure = { scope: "texts", problem: "its process has ended" }
      const waits = "its process broke 6 times, so it waits: its process has ended"
      assert.deepStrictEqual(answers, [dead, dead, dead, { scope: "provider", problem: waits }])
      assert.isUndefined(own.pid)
    }).pipe(Effect.scoped)
  )

  it.live("starts again once the while is over", () =>
    Effect.gen(function* () {
      const own = yield* processOf(`text === "fine" ? vector(${dimensions}) : process.exit(1)`, { crashWindowMs: 0 })
      for (const text of ["a", "b", "c", "d"]) yield* embed(own, text)
      assert.lengthOf((yield* embed(own, "fine")) as ReadonlyArray<Float32Array>, 1)
    }).pipe(Effect.scoped)
  )

  it.live("gets no more of a text than the model can read", () =>
    Effect.gen(function* () {
      const own = yield* processOf("refused(text.length)")
      assert.deepStrictEqual(yield* embed(own, "ä".repeat(5_000_000)), { scope: "texts", problem: "65536" })
    }).pipe(Effect.scoped)
  )

  it.live("loads the model once for many texts, gives equal texts equal vectors, and ends with its scope", () =>
    Effect.gen(function* () {
      const own = new EmbeddingProcess()
      const pid = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* running(own)
          const [cat, tax, again] = (yield* embed(own, "my cat", "income tax", "my cat")) as ReadonlyArray<Float32Array>
          const { pid } = own
          assert.deepStrictEqual(cat, again)
          assert.notDeepEqual(cat, tax)
          yield* embed(own, "   ", "x".repeat(200_000))
          assert.strictEqual(own.pid, pid)
          return pid ?? assert.fail("there is no process")
        })
      )
      assert.throws(() => process.kill(pid, 0), "ESRCH")
    })
  )
})

describe("the program of the local model", () => {
  const text = readFileSync(builtProgram("embedding-worker"), "utf8")

  it("holds no HTTP client, although one of its packages brings one", () => {
    assert.include(readFileSync(createRequire(import.meta.url).resolve("@energetic-ai/core"), "utf8"), "node-fetch")
    assert.notMatch(text, /node-fetch|whatwg-url|Only absolute URLs are supported/u)
  })

  it("is the only one that holds the model's code, so that choird loads none of it", () => {
    const programs = readdirSync(builtPath(".")).filter((name) => name.endsWith(".js") || name.endsWith(".jsc"))
    const holding = programs.filter((name) => /energetic|tfjs/u.test(readFileSync(builtPath(name), "latin1")))
    assert.deepStrictEqual(holding, ["embedding-worker.js"])
  })
})
