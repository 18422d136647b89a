import { readFileSync } from "node:fs"
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
          spawnChoirctl(["agent", "list"], { env, typing: [] }),
          spawnChoirctl(["agent", "list"], { env: { ...env, NO_COLOR: "1" }, typing: [] })
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
      const typing = [
        { after: "from yesterday", text: "hello\r" },
        { after: "echo hello", text: "\u0004" }
      ]
      const ran = yield* spawnChoirctl(["chat", "agent-1"], { env, typing })
      assert.strictEqual(ran.code, 0, ran.out)
      assert.strictEqual(desk.sent[0]?.text, "hello")
      assert.deepStrictEqual(desk.acked, ["9000", "10"])
    })
  )

  it.live("asks for a secret without echo, and for what init needs, on a terminal alone", () =>
    Effect.gen(function* () {
      const home = join(yield* temporaryFolder, "home")
      // An engine of this machine may be one that init asks about.
      const env = { CHOIR_HOME: home, TERM: "xterm", DOCKER_HOST: "unix:///nonexistent/docker.sock" }
      // Nothing answers for Telegram there, so that the token is kept untried.
      const flags = ["--model-provider", "offline", "--runtime", "auto", "--telegram-api-root", "http://127.0.0.1:9"]
      const made = yield* spawnChoirctl(["init", ...flags], {
        env,
        typing: [
          { after: "Bot token from @BotFather", text: "99:hidden\r" },
          { after: "What now?", text: "\u001b[B\r" },
          { after: "Your Telegram user id", text: "\r" },
          { after: "Your time zone", text: "Europe/Berlin\r" }
        ]
      })
      assert.strictEqual(made.code, 0, made.out)
      assert.notInclude(made.out, "99:hidden")
      assert.include(made.out, "choirctl dm pair phone --gateway telegram --admin")
      const { dms, gateways, timezone } = JSON.parse(readFileSync(join(home, "config.json"), "utf8"))
      assert.deepStrictEqual([Object.keys(dms), Object.keys(gateways)], [["terminal"], ["terminal", "telegram"]])
      assert.strictEqual(timezone, "Europe/Berlin")
      const set = yield* spawnChoirctl(["secret", "set", "key"], {
        env,
        typing: [{ after: "Value of key", text: "hidden\r" }]
      })
      assert.strictEqual(set.code, 0, set.out)
      assert.notInclude(set.out, "hidden")
      const secrets = JSON.parse(readFileSync(join(home, "secrets.json"), "utf8"))
      assert.deepStrictEqual(secrets, { key: "hidden", "telegram-token": "99:hidden" })
    })
  )
})
