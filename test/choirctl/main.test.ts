import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnChoirctl } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { fakeChoird, makeDesk, reply } from "../support/fakeChoird.ts"

const STACK = /^\s+at /mu

describe("the program choirctl", () => {
  it.live("exits with the code of its failure and prints no stack", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const env = { CHOIR_HOME: home }
      const [unreachable, usage, configuration] = yield* Effect.all(
        [
          spawnChoirctl(["status", "--json"], { env }),
          spawnChoirctl(["agent", "nonsense"], { env }),
          spawnChoirctl(["config", "validate"], { env: { CHOIR_HOME: join(home, "none") } })
        ],
        { concurrency: 3 }
      )
      assert.deepStrictEqual([unreachable.code, usage.code, configuration.code], [69, 2, 78])
      assert.strictEqual(JSON.parse(unreachable.out).error.type, "CHOIRD_UNREACHABLE")
      assert.strictEqual(unreachable.err, "")
      for (const { err, out } of [unreachable, usage, configuration]) assert.notMatch(err + out, STACK)
    })
  )

  it.live("reads CHOIR_HOME, prints no colours into a pipe and obeys NO_COLOR on a terminal", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const env = { CHOIR_HOME: home, TERM: "xterm" }
      const [piped, terminal, plain] = yield* Effect.all(
        [
          spawnChoirctl(["agent", "list"], { env }),
          spawnChoirctl(["agent", "list"], { env, terminal: true }),
          spawnChoirctl(["agent", "list"], { env: { ...env, NO_COLOR: "1" }, terminal: true })
        ],
        { concurrency: 3 }
      )
      assert.notInclude(piped.out, "\u001b")
      assert.include(terminal.out, "\u001b[32mrunning\u001b[0m")
      assert.notInclude(plain.out, "\u001b[32m")
      assert.include(plain.out, "running")
    })
  )

  it.live("holds a conversation on a terminal and ends with Ctrl-D", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const desk = makeDesk([reply("900", "from yesterday")])
      yield* fakeChoird(home, {}, desk)
      const env = { CHOIR_HOME: home, TERM: "xterm", NO_COLOR: "1" }
      const ran = yield* spawnChoirctl(["chat", "agent-1"], { env, terminal: true, stdin: "hello\r\u0004" })
      assert.strictEqual(ran.code, 0, ran.out)
      assert.include(ran.out, "from yesterday")
      assert.strictEqual(desk.sent[0]?.text, "hello")
    })
  )
})
