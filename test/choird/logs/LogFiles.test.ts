import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schedule, Stream } from "effect"
import { AgentId, SessionId } from "#schema/Ids.ts"
import { agentLine, LogFiles } from "#src/choird/logs/LogFiles.ts"
import { temporaryFolder } from "../../support/engines.ts"

const ADA = AgentId.make("ada")
const SESSION = SessionId.make("0123456789abcdef")
const AT = "2026-01-01T00:00:00.000Z"
const fixed = { timestamp: AT, source: "ada", session_id: SESSION }

const logged = (home: string) =>
  Layer.unwrap(Effect.map(LogFiles, ({ logger }) => Logger.layer([logger]))).pipe(
    Layer.provideMerge(LogFiles.layer(home, undefined))
  )

/** The lines of a source's archives, the oldest first, and the modes of the files. */
const archivedIn = (home: string, source: string) => {
  const folder = join(home, "logs", "archive", source)
  const names = existsSync(folder) ? readdirSync(folder).toSorted() : []
  const texts = names.map((name) => {
    const bytes = readFileSync(join(folder, name))
    return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString()
  })
  const modes = names.map((name) => statSync(join(folder, name)).mode & 0o777)
  return { names, lines: texts.join("").trim().split("\n"), modes }
}

/** Waits until every archive of a source is compressed; the compression runs in other threads, on the real clock. */
const compressed = (home: string, source: string) =>
  Effect.sync(() => archivedIn(home, source).names).pipe(
    Effect.repeat({
      until: (names) => names.length > 0 && names.every((name) => name.endsWith(".log.gz")),
      schedule: Schedule.spaced("5 millis")
    })
  )

const messages = (lines: ReadonlyArray<string>) => lines.map((text): unknown => JSON.parse(text).message)

describe("LogFiles", () => {
  it.live("keeps choird's lines in its own file, and those about an agent in the agent's as well", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* Effect.gen(function* () {
        yield* Effect.logInfo("alone")
        yield* Effect.logInfo("about ada", { agent_id: "ada" })
        yield* Effect.logInfo("about nobody", { agent_id: "../../etc/x" })
        const { follow } = yield* LogFiles
        yield* follow(ADA, SESSION, Stream.make("plain", `{"level":"WARN","message":"own"}`))
      }).pipe(Effect.provide(logged(home)))
      const read = (name: string) =>
        readFileSync(join(home, "logs", name), "utf8")
          .trim()
          .split("\n")
          .map((text) => JSON.parse(text).message)
      assert.deepStrictEqual(read("choird.log"), ["alone", "about ada", "about nobody"])
      assert.deepStrictEqual(read("ada.log"), ["about ada", "plain", "own"])
      assert.strictEqual(statSync(join(home, "logs")).mode & 0o777, 0o700)
      assert.strictEqual(statSync(join(home, "logs", "ada.log")).mode & 0o777, 0o600)
    })
  )

  it.live("makes no home, follows no link, and goes on where it cannot write", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      yield* Effect.provide(Effect.logInfo("lost"), logged(join(folder, "none")))
      assert.isFalse(existsSync(join(folder, "none")))
      mkdirSync(join(folder, "logs"))
      writeFileSync(join(folder, "target"), "")
      symlinkSync(join(folder, "target"), join(folder, "logs", "choird.log"))
      yield* Effect.provide(Effect.logInfo("lost"), logged(folder))
      assert.strictEqual(readFileSync(join(folder, "target"), "utf8"), "")
    })
  )

  it.live("logs a line that nests as deep as a line can, the lines after it, and the agent's last words", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const depth = 8149
      const deep = `{"level":"ERROR","message":${"[".repeat(depth)}${"]".repeat(depth)}}`
      const last = yield* Effect.gen(function* () {
        const { follow } = yield* LogFiles
        return yield* follow(ADA, SESSION, Stream.make("before", deep, "after", `{"level":"FATAL","message":"why"}`))
      }).pipe(Effect.provide(logged(home)))
      assert.strictEqual(last, "why")
      const lines = readFileSync(join(home, "logs", "ada.log"), "utf8")
        .trim()
        .split("\n")
      const [before, long, ...after] = messages(lines)
      assert.deepStrictEqual([before, ...after], ["before", "after", "why"])
      assert.match(String(long), /^\{"level":"ERROR","message":\[\[/u)
    })
  )

  it("believes an agent its level and lane, and not its time, name or session", () => {
    const own = { timestamp: "x", source: "choird", session_id: "y", level: "ERROR", message: ["a", { b: 1 }] }
    const annotations = { lane: "core:job", session_id: "z" }
    assert.deepStrictEqual(agentLine(ADA, SESSION, AT, JSON.stringify({ ...own, annotations, cause: "why" })), {
      ...fixed,
      level: "ERROR",
      lane: "core:job",
      message: 'a {"b":1}',
      cause: "why"
    })
    for (const text of ["", "plain", "{", "null", '{"level":"LOUD","message":"x"}', '{"level":"INFO"}'])
      assert.deepStrictEqual(agentLine(ADA, SESSION, AT, text), { ...fixed, level: "INFO", message: text })
  })

  it.live("loses no line and doubles none when files are archived while they are written (R50, R77)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const numbers = Array.from({ length: 1000 }, (_, index) => String(index))
      yield* Effect.gen(function* () {
        const { archiveAfter, archiving } = yield* LogFiles
        yield* archiveAfter(100)
        yield* archiving
        const { written } = yield* LogFiles
        for (const [index, number] of numbers.entries()) {
          yield* Effect.logInfo(number)
          if (index % 100 === 99) yield* written
        }
        yield* compressed(home, "choird")
      }).pipe(Effect.scoped, Effect.provide(logged(home)))
      const { lines, modes, names } = archivedIn(home, "choird")
      assert.deepStrictEqual(messages(lines), numbers)
      assert.strictEqual(names.length, 10)
      assert.isTrue(modes.every((mode) => mode === 0o600))
      assert.strictEqual(statSync(join(home, "logs", "archive", "choird")).mode & 0o777, 0o700)
      assert.isFalse(existsSync(join(home, "logs", "choird.log")))
    })
  )

  it.live("archives an agent's log when its session ends, and when it is a flood", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* Effect.gen(function* () {
        const { archive, archiveAfter, archiving, follow, written } = yield* LogFiles
        yield* archiveAfter(1000)
        yield* archiving
        yield* archive(ADA)
        yield* follow(ADA, SESSION, Stream.make("the last word"))
        yield* archive(ADA)
        yield* compressed(home, "ada")
        assert.deepStrictEqual(messages(archivedIn(home, "ada").lines), ["the last word"])
        assert.isFalse(existsSync(join(home, "logs", "ada.log")))
        const flood = Array.from({ length: 1100 }, () => "x".repeat(4000))
        yield* follow(ADA, SESSION, Stream.fromArray(flood))
        yield* written
        yield* compressed(home, "ada")
        assert.strictEqual(archivedIn(home, "ada").names.length, 2)
      }).pipe(Effect.scoped, Effect.provide(logged(home)))
    })
  )

  it.live("archives nothing until it is told that the home is its own", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      mkdirSync(join(home, "logs"))
      writeFileSync(join(home, "logs", "ada.log"), "x\n".repeat(3_000_000))
      yield* Effect.provide(Effect.logInfo("one more", { agent_id: "ada" }), logged(home))
      assert.isFalse(existsSync(join(home, "logs", "archive")))
    })
  )

  it.live("cuts off what a death left of a line, so that every line is whole", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      mkdirSync(join(home, "logs"))
      writeFileSync(join(home, "logs", "choird.log"), '{"message":"first"}\n{"message":"to')
      yield* Effect.provide(Effect.logInfo("second"), logged(home))
      const lines = readFileSync(join(home, "logs", "choird.log"), "utf8")
        .trim()
        .split("\n")
      assert.deepStrictEqual(messages(lines), ["first", "second"])
    })
  )
})
