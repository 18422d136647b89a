import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { SessionId } from "#schema/Ids.ts"
import { isTooLong } from "#src/choird/queues/chatTextLimit.ts"
import { KINDS } from "./kinds.ts"
import { sandboxWorks } from "./runtime.ts"
import { siege } from "./siege.ts"
import { SIZE } from "../support/size.ts"

const WINDOWS = { first_ms: 1000, quiet_ms: 1000, one_ms: 0, all_ms: SIZE.siege_ms, settle_ms: 500 }
/** `npm run siege` has all of them, and measures times, which a busy machine would spoil here. */
const SHORT = new Set(["heartbeats", "replays", "tokens", "slow", "crashes"])
const GROWN_MIB_MAX = 400

describe("three honest agents beside hostile ones", () => {
  it.live(
    "are answered, lose nothing and show nothing, while floods, replays, forgeries and slow connections go on",
    () =>
      Effect.gen(function* () {
        const runtime = (yield* sandboxWorks) ? "sandbox" : "process"
        const kinds = KINDS.filter(({ id }) => SHORT.has(id))
        const minutes = WINDOWS.all_ms / 60_000
        const it = yield* siege({ minutes, seed: "ci", database: "embedded", runtime, kinds, windows: WINDOWS })
        assert.deepStrictEqual(it.problems, [])
        // On a busy machine no message may fall into the short window of all at once; each that was sent is judged.
        assert.isAbove(it.messages, 0)
        assert.isBelow(it.rss.most - it.rss.before, GROWN_MIB_MAX)
        // The attacks were made: some requests were taken, and those without a token were not.
        for (const id of ["heartbeats", "replays"]) assert.match(it.told[id] ?? "", /"attacks":(?:[2-9]|\d\d)/u)
        assert.match(it.told["replays"] ?? "", /"(?:200|429)":\d/u)
        assert.match(it.told["tokens"] ?? "", /"401":\d/u)
      })
  )
})

describe("the words of a hostile agent's model", () => {
  it("are taken as a message, of whatever number", () => {
    for (const { id, words } of KINDS)
      for (const n of [1, 1_000_000])
        assert.isFalse(
          isTooLong(words?.(n, SessionId.make("0".repeat(16))) ?? ""),
          `${id} says more than a message may have`
        )
  })
})

describe("the command line of the siege", () => {
  it("is explained by --help, and an unknown kind is refused with the known ones", () => {
    const run = (...args: ReadonlyArray<string>) =>
      spawnSync(process.execPath, [join(import.meta.dirname, "main.ts"), ...args], { encoding: "utf8" })
    assert.match(run("--help").stdout, /^npm run siege -- \[options\]\n/u)
    const wrong = run("--kind", "x")
    assert.deepStrictEqual([wrong.status, wrong.stderr.startsWith("--kind takes one of heartbeats, ")], [2, true])
  })
})
