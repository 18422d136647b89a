import { mkdirSync, writeFileSync } from "node:fs"
import { createServer, type Server, type ServerResponse } from "node:http"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Conflict, Internal, TooMany } from "#schema/ApiError.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { fakeChoird } from "../support/fakeChoird.ts"

const inHome = <A, E, R>(test: (home: string) => Effect.Effect<A, E, R>) => Effect.flatMap(temporaryFolder, test)

describe("choirctl", () => {
  it.effect("says 69 and how to start choird when nobody answers", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        const people = yield* choirctl(home, ["status"])
        assert.strictEqual(people.code, 69)
        assert.strictEqual(people.out, "")
        assert.include(people.err, "error: choird is not running")
        assert.include(people.err, `hint: choirctl --home ${home} init`)
        writeFileSync(join(home, "config.json"), "{}")
        assert.include((yield* choirctl(home, ["status"])).err, `hint: choirctl --home ${home} daemon start`)
        const programs = yield* choirctl(home, ["status", "--json"])
        assert.strictEqual(programs.code, 69)
        assert.strictEqual(programs.err, "")
        assert.deepInclude(document(programs), { ok: false })
      })
    )
  )

  it.effect("says 69 for a socket whose path no kernel takes", () =>
    inHome(
      Effect.fnUntraced(function* (folder) {
        const ran = yield* choirctl(join(folder, "x".repeat(120)), ["agent", "list"])
        assert.strictEqual(ran.code, 69)
        assert.include(ran.err, "shorter path")
      })
    )
  )

  it.effect("says 2 and where help is for a command that it does not know, and for one that is missing", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        for (const args of [
          ["agent", "strat"],
          ["agent"],
          [],
          ["agent", "start", "--nope", "agent-1"],
          ["agent", "start"]
        ]) {
          const ran = yield* choirctl(home, args)
          assert.strictEqual(ran.code, 2, args.join(" "))
          assert.include(ran.err, "--help")
          assert.strictEqual(ran.out, "")
        }
        const ran = yield* choirctl(home, ["agent", "start", "Control!", "--json"])
        assert.strictEqual(ran.code, 2)
        assert.nestedPropertyVal(document(ran), "error.type", "USAGE")
      })
    )
  )

  it.effect("gives no help for a command that it does not know, and says 2", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        const { code, err, out } = yield* choirctl(home, ["agnet", "--help"])
        assert.deepStrictEqual([code, out], [2, ""])
        assert.match(err, /Unknown subcommand "agnet" for "choirctl"\s+Did you mean this\?\s+agent/u)
        const asJson = yield* choirctl(home, ["agent", "strat", "-h", "--json"])
        assert.strictEqual(asJson.code, 2)
        assert.nestedPropertyVal(document(asJson), "error.hint", "choirctl agent --help")
        assert.strictEqual((yield* choirctl(home, ["agent", "--help", "strat"])).code, 2)
        for (const args of [["--help"], ["agent", "--help"], ["--help", "agent", "start"]])
          assert.strictEqual((yield* choirctl(home, args)).code, 0, args.join(" "))
      })
    )
  )

  it.effect("repeats a refusal of choird with its hint, and 75 for what may succeed later", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        const refusal = { type: "NOT_READY", message: "no image\u001b[2J", hint: "choirctl agent build agent-1" }
        const later = { type: "QUEUE_FULL", message: "later", retry_after_ms: 1000 }
        yield* fakeChoird(home, {
          changed: Effect.fail(new Conflict({ error: refusal })),
          agents: Effect.fail(new TooMany({ error: later })),
          status: Effect.fail(new Internal({ error: { type: "INTERNAL", message: "no" } }))
        })
        const started = yield* choirctl(home, ["agent", "start", "agent-1"])
        assert.deepStrictEqual(started, {
          code: 1,
          out: "",
          err: `error: no image\u{FFFD}[2J\nhint: choirctl --home ${home} agent build agent-1\n`
        })
        const asJson = yield* choirctl(home, ["agent", "start", "agent-1", "--json"])
        assert.deepStrictEqual(document(asJson), { ok: false, error: refusal })
        assert.strictEqual((yield* choirctl(home, ["agent", "list"])).code, 75)
        assert.strictEqual((yield* choirctl(home, ["status"])).code, 1)
      })
    )
  )

  it.live("tells an answer that broke off from one that it does not understand", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        const told = (answer: (response: ServerResponse) => void) =>
          Effect.scoped(
            Effect.gen(function* () {
              mkdirSync(join(home, "socks"), { recursive: true })
              yield* Effect.acquireRelease(
                Effect.callback<Server>((resume) => {
                  const server = createServer((_request, response) => answer(response))
                  server.listen(join(home, "socks", "choird.sock"), () => resume(Effect.succeed(server)))
                }),
                (server) =>
                  Effect.callback<void>((resume) => {
                    server.close(() => resume(Effect.void))
                    server.closeAllConnections()
                  })
              )
              return yield* choirctl(home, ["agent", "list", "--json"])
            })
          )
        const json = (response: ServerResponse, text: string) =>
          response.setHeader("content-type", "application/json").end(text)
        const cut = yield* told((response) => response.destroy())
        assert.nestedPropertyVal(document(cut), "error.type", "CONNECTION_LOST")
        assert.strictEqual(cut.code, 75)
        const torn = yield* told((response) => {
          response.writeHead(200, { "content-type": "application/json", "content-length": 1000 })
          response.write('[{"agent_id"', () => response.destroy())
        })
        assert.strictEqual(torn.code, 75)
        const foreign = yield* told((response) => json(response, '{"agents":[]}'))
        assert.nestedPropertyVal(document(foreign), "error.type", "PROTOCOL")
        assert.strictEqual(foreign.code, 1)
      })
    )
  )

  it.effect("prints help on standard output, with an example for every command", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        const groups: Readonly<Record<string, ReadonlyArray<string>>> = {
          agent: ["init", "list", "build", "start", "stop", "restart", "status"],
          session: ["list", "events", "cores", "cancel", "verify"],
          secret: ["list", "set", "delete"],
          workspace: ["list"],
          config: ["validate", "schema", "show"],
          db: ["migrate", "backup", "restore"],
          daemon: ["start", "stop", "status", "install", "uninstall"]
        }
        const commands = [
          ...Object.entries(groups).flatMap(([group, names]) => names.map((name) => [group, name])),
          ...["init", "chat", "logs", "status", "doctor", "completions"].map((name) => [name])
        ]
        for (const command of commands) {
          const { code, err, out } = yield* choirctl(home, [...command, "--help"])
          assert.strictEqual(code, 0)
          assert.strictEqual(err, "")
          assert.include(out, "EXAMPLES", command.join(" "))
          assert.include(out, `choirctl ${command.join(" ")}`)
        }
      })
    )
  )

  it.effect("prints completions for bash, zsh and fish", () =>
    inHome(
      Effect.fnUntraced(function* (home) {
        for (const shell of ["bash", "zsh", "fish"]) {
          const { code, out } = yield* choirctl(home, ["completions", shell])
          assert.strictEqual(code, 0)
          for (const word of ["session", "verify", "agent", "restart", "home", "completions"]) assert.include(out, word)
          assert.include(out, `choirctl completions ${shell} `, "the header names this command")
          assert.notInclude(out, "choirctl --completions")
        }
        assert.strictEqual((yield* choirctl(home, ["completions", "tcsh"])).code, 2)
      })
    )
  )
})
