import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { humanText, type LogLine, logLine, logText } from "#src/shared/text/logs.ts"

const line = (message: string): LogLine => ({
  timestamp: "2026-01-01T10:20:30.000Z",
  level: "INFO",
  source: "a",
  message
})

describe("log lines", () => {
  it.effect("make fields of objects and annotations, and take no other time or source from them", () =>
    Effect.gen(function* () {
      const lines: Array<LogLine> = []
      const logger = Logger.make((options) => void lines.push(logLine("choird", options)))
      yield* Effect.logWarning("one", "two", { session_id: "s", source: "forged" }).pipe(
        Effect.annotateLogs({ agent_id: "ada" }),
        Effect.provide(Logger.layer([logger]))
      )
      assert.deepStrictEqual(lines, [
        {
          timestamp: "1970-01-01T00:00:00.000Z",
          level: "WARN",
          source: "choird",
          agent_id: "ada",
          session_id: "s",
          message: "one two"
        }
      ])
    })
  )

  it("are valid JSON of at most 16 KiB, whatever is in them (R77)", () => {
    for (const message of ["x".repeat(1e6), "\0".repeat(1e5), "🙂".repeat(1e5), "\ud800", 'a"b\nc']) {
      const text = logText({ ...line(message), a: message, b: message, c: message, d: message, e: 1n, session_id: "s" })
      assert.isAtMost(Buffer.byteLength(text), 16 * 1024)
      assert.notInclude(text, "\n")
      assert.containsAllKeys(JSON.parse(text), ["timestamp", "level", "source", "message"])
    }
  })

  it("show a person no character that a terminal would obey", () => {
    const shown = humanText({
      ...line("a\u001b[2Jb\u009bc\u202ed\ne"),
      level: "ERROR",
      agent_id: "ada",
      cause: "why\nat x"
    })
    assert.strictEqual(shown, "10:20:30 ERROR ada: a [2Jb c d e (why)")
  })
})
