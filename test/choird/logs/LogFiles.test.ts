import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Stream } from "effect"
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
})
