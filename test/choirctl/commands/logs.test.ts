import { appendFileSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Queue } from "effect"
import { TestClock } from "effect/testing"
import { LOG_POLL_MS, tailLog } from "#src/choirctl/terminal/LogReader.ts"
import { choirctl, documents } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { LOG_LINE_BYTES_MAX } from "#src/shared/text/logs.ts"

const made = Effect.map(temporaryFolder, (home) => {
  mkdirSync(join(home, "logs"))
  return { home, path: join(home, "logs", "agent-1.log") }
})

const line = (message: string, level = "INFO") =>
  `${JSON.stringify({ timestamp: "2026-01-02T03:04:05.678Z", level, source: "agent-1", message })}\n`

describe("choirctl logs", () => {
  it.effect("prints the lines of the file as JSON, also those that are none", () =>
    Effect.gen(function* () {
      const { home, path } = yield* made
      writeFileSync(path, `${line("one")}torn {\n${line("two").trimEnd()}`)
      const ran = yield* choirctl(home, ["logs", "agent-1", "--no-follow"])
      assert.deepStrictEqual(
        documents(ran).map((entry) => (entry as { message: string }).message),
        ["one", "torn {", "two"]
      )
      const last = yield* choirctl(home, ["logs", "agent-1", "--no-follow", "--last", "1", "--json"])
      assert.strictEqual(documents(last).length, 1)
    })
  )

  it.effect("prints lines for people on a terminal, with nothing in them that it would obey", () =>
    Effect.gen(function* () {
      const { home, path } = yield* made
      writeFileSync(path, `${line("fine")}${line("bad\u009b2J", "ERROR")}\u001b]0;title\u0007\n`)
      const { out } = yield* choirctl(home, ["logs", "agent-1", "--no-follow"], { color: true })
      assert.strictEqual(out, "03:04:05 fine\n\u001b[31m03:04:05 ERROR bad 2J\u001b[0m\n\u{FFFD}]0;title\u{FFFD}\n")
    })
  )

  it.effect("says what to do when there is no such log", () =>
    Effect.gen(function* () {
      const { home } = yield* made
      const ran = yield* choirctl(home, ["logs", "choird"])
      assert.strictEqual(ran.code, 1)
      assert.include(ran.err, " agent list")
      assert.strictEqual((yield* choirctl(home, ["logs", "../secrets"])).code, 2)
    })
  )

  /** A reader that follows, and the messages that it gave so far. */
  const following = (path: string, last?: number) =>
    Effect.gen(function* () {
      const seen = yield* Queue.bounded<string>(100)
      yield* tailLog({ path, follow: true, last, hint: "" }, ({ text }) => Effect.asVoid(Queue.offer(seen, text))).pipe(
        Effect.forkChild({ startImmediately: true })
      )
      return { seen, look: TestClock.adjust(LOG_POLL_MS) }
    })

  it.effect("follows a file that grows, line by line", () =>
    Effect.gen(function* () {
      const { path } = yield* made
      writeFileSync(path, "one\n")
      const { look, seen } = yield* following(path)
      assert.strictEqual(yield* Queue.take(seen), "one")
      appendFileSync(path, "tw")
      yield* look
      appendFileSync(path, "o\nthree\n")
      yield* look
      assert.deepStrictEqual(yield* Queue.takeN(seen, 2), ["two", "three"])
    })
  )

  it.effect("follows a file that is emptied, and one that gives way to a new one", () =>
    Effect.gen(function* () {
      const { path } = yield* made
      writeFileSync(path, "a long first line\n")
      const { look, seen } = yield* following(path)
      assert.strictEqual(yield* Queue.take(seen), "a long first line")
      truncateSync(path)
      appendFileSync(path, "after\n")
      yield* look
      assert.strictEqual(yield* Queue.take(seen), "after")
      appendFileSync(path, "last words\n")
      renameSync(path, `${path}.1`)
      writeFileSync(path, "new file\n")
      yield* look
      assert.deepStrictEqual(yield* Queue.takeN(seen, 2), ["last words", "new file"])
      rmSync(path)
      yield* look
      writeFileSync(path, "again\n")
      yield* look
      assert.strictEqual(yield* Queue.take(seen), "again")
    })
  )

  /** Moves a log into its archive, as choird does. */
  const rotate = (path: string, stem: string, gz: boolean) => {
    const folder = join(path, "..", "archive", "agent-1")
    mkdirSync(folder, { recursive: true })
    if (gz) writeFileSync(join(folder, `${stem}.log.gz`), gzipSync(readFileSync(path)))
    if (gz) rmSync(path)
    else renameSync(path, join(folder, `${stem}.log`))
  }

  it.effect("loses no line and doubles none over any number of rotations between two looks", () =>
    Effect.gen(function* () {
      const { path } = yield* made
      writeFileSync(path, "an older log\n")
      rotate(path, "2026-01-01T00-00-00.000Z", true)
      writeFileSync(path, "one\n")
      const { look, seen } = yield* following(path)
      assert.strictEqual(yield* Queue.take(seen), "one")
      appendFileSync(path, "two\n")
      rotate(path, "2026-01-02T00-00-00.000Z", false)
      writeFileSync(path, "three\n")
      rotate(path, "2026-01-03T00-00-00.000Z", true)
      writeFileSync(path, "four\n")
      rotate(path, "2026-01-04T00-00-00.000Z", false)
      writeFileSync(path, "five\n")
      yield* look
      assert.deepStrictEqual(yield* Queue.takeN(seen, 4), ["two", "three", "four", "five"])
      rotate(path, "2026-01-05T00-00-00.000Z", false)
      yield* look
      writeFileSync(path, "six\n")
      rotate(path, "2026-01-06T00-00-00.000Z", true)
      writeFileSync(path, "seven\n")
      yield* look
      assert.deepStrictEqual(yield* Queue.takeN(seen, 2), ["six", "seven"])
      yield* look
      assert.strictEqual(yield* Queue.size(seen), 0)
    })
  )

  it.effect("takes half a line back that could not be written, and reads nothing twice", () =>
    Effect.gen(function* () {
      const { path } = yield* made
      writeFileSync(path, "one\n")
      const { look, seen } = yield* following(path)
      assert.strictEqual(yield* Queue.take(seen), "one")
      appendFileSync(path, "torn")
      yield* look
      truncateSync(path, 4)
      yield* look
      appendFileSync(path, "two\n")
      yield* look
      assert.deepStrictEqual(yield* Queue.takeAll(seen), ["two"])
    })
  )

  it.effect("cuts a line that is too long and begins with the newest lines that were asked for", () =>
    Effect.gen(function* () {
      const { path } = yield* made
      writeFileSync(path, `first\n${"x".repeat(LOG_LINE_BYTES_MAX + 10)}\nlast\n`)
      const { seen } = yield* following(path, 2)
      const [long, last] = yield* Queue.takeN(seen, 2)
      assert.strictEqual(long?.length, LOG_LINE_BYTES_MAX)
      assert.strictEqual(last, "last")
    })
  )
})
