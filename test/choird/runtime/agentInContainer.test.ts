import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { testEngine } from "../../support/docker.ts"
import { docker } from "../../support/dockerImage.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { OUTSIDE_TEXT, walkUnderRaces } from "../../support/workspace.ts"
import { dockerSuite } from "./dockerRig.ts"
import { SIZE } from "../../support/size.ts"

/** `PATHS=100000 SWAPS=100000` are the figures of docs/evidence/security.md. */
const { containerPaths: PATHS, swaps: SWAPS } = SIZE
const TEST_MS_MAX = 300_000 + 10 * Math.max(PATHS, SWAPS)

const { reason, socket } = testEngine("an agent's own code in a container")
const { inside, started } = dockerSuite(socket, "agentParts.ts")

/** What runs in a container, as the engine sees it. */
const top = (name: string) => docker(socket, "top", name, "-eo", "pid,args").split("\n").slice(1)

describe.skipIf(reason !== undefined)("An agent's own code in a container", { timeout: TEST_MS_MAX }, () => {
  it.live(`reads and writes nothing outside at ${PATHS} hostile paths, by its file tools (R40)`, () =>
    Effect.gen(function* () {
      const { agent, spec } = yield* started()
      const beside = readdirSync(join(spec.workspace, ".."))
      const found = (yield* agent.ask(`return parts.paths(${PATHS}, 40)`)) as {
        readonly written: number
        readonly read: number
        readonly refused: number
      }
      const { read, refused, written, ...rest } = found
      assert.deepStrictEqual<unknown>(rest, { leaks: [], passed: true, outside: OUTSIDE_TEXT })
      if (PATHS > 2000) console.log(found)
      for (const count of [read, refused, written]) assert.isAbove(count, PATHS / 20, JSON.stringify(found))
      assert.deepStrictEqual(readdirSync(join(spec.workspace, "..")), beside)
      assert.strictEqual(yield* agent.sh("ls /tmp/outside"), "file")
    }).pipe(inside)
  )

  it.live(`gets no byte of this host by ${SWAPS} swaps of a path that choird's walk reads and writes (R39, D20)`, () =>
    Effect.gen(function* () {
      const { agent, spec } = yield* started()
      const outside = yield* temporaryFolder
      for (const [name, text] of [
        ["file", OUTSIDE_TEXT],
        ["outside-only", ""]
      ] as const)
        writeFileSync(join(outside, name), text)
      yield* agent.ask(`parts.race(${JSON.stringify(outside)})`)
      const counts = yield* walkUnderRaces(spec.workspace, SWAPS, Effect.map(agent.ask("return parts.swaps()"), Number))
      if (SWAPS > 12_000) console.log(counts)
      assert.strictEqual(counts.leaked, 0)
      assert.deepStrictEqual(readdirSync(outside).sort(), ["file", "outside-only"])
      assert.strictEqual(readFileSync(join(outside, "file"), "utf8"), OUTSIDE_TEXT)
    }).pipe(inside)
  )

  const escapes: Readonly<Record<string, string>> = {
    "a session of its own": "setsid sleep 1000 & echo started",
    "two forks": "(setsid sh -c 'sleep 1000 & sleep 1000 &' &); echo started",
    "no hang-ups": "nohup sleep 1000 >/dev/null 2>&1 & echo started",
    "no trace in its environment": "setsid -f env -i setsid -f sleep 1000 >/dev/null 2>&1; echo started",
    "deaf ears": "(trap '' TERM INT HUP; setsid sleep 1000; sleep 1000) & echo started",
    "a daemon that watches over it":
      "setsid -f sh -c 'while :; do sleep 0.1 & sleep 1000 & wait; done' >/dev/null 2>&1; echo started"
  }
  it.live("leaves no process of a call of choir.exec behind, whatever it tries, at its end or its timeout (R22)", () =>
    Effect.gen(function* () {
      const { agent, id } = yield* started()
      const before = top(id.name)
      for (const [name, script] of Object.entries(escapes))
        for (const end of ["", "; wait; sleep 1000"]) {
          const command = JSON.stringify(script + end)
          const outcome = (yield* agent.ask(`return parts.exec(${command}, ${end === "" ? 10_000 : 300})`)) as {
            readonly status: string
          }
          assert.strictEqual(outcome.status, end === "" ? "success" : "timeout", name)
          // The first look behind the answer, and not one within a second: what a tool left is gone before it answers.
          assert.deepStrictEqual(top(id.name), before, name)
        }
    }).pipe(inside)
  )
})
