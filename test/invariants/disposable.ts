/** Invariant 8: an agent may be killed and its workspace lost at any moment; what choird acknowledged is enough to go on from. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import type { ChoirEvent } from "#schema/Event.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, says, type Script } from "../support/testing/ScriptedModel.ts"
import { ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { externalTool } from "../support/externalTool.ts"
import { temporaryWorkspace } from "../support/workspace.ts"

/** Virtual time in which a life comes to its end, or it never will. */
const LIFE_MAX = "10 minutes"

/** So short that only the tool's own call takes it out of a text: every text is searched for longer ones (SECRET_ANYWHERE_CHARS_MIN). */
const CANARY = "c5b1f0c"

/** Each message has the model write a note, send it, and say how often. */
const script: Script = (messages) => {
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === "user"))
  const results = turn.filter(({ role }) => role === "tool").length
  const text = String(turn[0]?.content)
  return Effect.succeed(
    results === 0
      ? calls(["note.write", { text }])
      : results === 1
        ? calls(["out.send", { text }])
        : says(`${text} done`)
  )
}

/** A life that ends when choird has this many events, and then one to the end. The first one takes its workspace along. */
const live = Effect.fnUntraced(function* (crash: number | undefined, root: string) {
  const plane = yield* makeMemoryControlPlane
  const sent: Array<string> = []
  const tools = [
    testTool("note.write", ({ call_id }) =>
      Effect.sync(() => {
        writeFileSync(join(root, call_id), call_id)
        return { status: "success", summary: "written" } as const
      })
    ),
    testTool(
      "out.send",
      ({ call_id }) =>
        Effect.suspend(() => {
          sent.push(call_id)
          return Effect.delay(Effect.succeed({ status: "success", summary: "sent" } as const), "50 millis")
        }),
      { effect: "external" }
    )
  ]
  const texts = ["one", "two"]
  for (const text of texts) yield* plane.say(text)
  const over = plane.until((_, state) => state.last_inbox_id === 2n && quiet(state))
  let acknowledged: ReadonlyArray<ChoirEvent> = []
  if (crash !== undefined) {
    const first = yield* Effect.forkChild(runAgent({ plane, script, tools }))
    yield* Effect.raceFirst(plane.cutOffAt(crash), over)
    yield* Fiber.interrupt(first)
    acknowledged = structuredClone(plane.events)
    rmSync(root, { recursive: true })
    mkdirSync(root)
  }
  const last = yield* Effect.forkChild(runAgent({ plane, script, tools, epoch: 2 }))
  const came = yield* Effect.timeoutOption(over, LIFE_MAX)
  yield* Fiber.interrupt(last)
  const where = crash === undefined ? "without a crash" : `after a crash at event ${crash}`
  assert.isTrue(Option.isSome(came), `the session did not go on ${where}`)
  assert.deepStrictEqual(
    plane.events.slice(0, acknowledged.length),
    acknowledged,
    `${where}: what was acknowledged changed`
  )
  assert.deepStrictEqual(
    spoken(plane.events).map(({ payload }) => [payload.kind, payload.in_reply_to, payload.text]),
    texts.map((text, index) => ["reply", String(index + 1), `${text} done`]),
    `${where}: another conversation`
  )
  assert.deepStrictEqual([...new Set(sent)], sent, `${where}: an effect happened twice`)
  const doubtful = ofType(plane.events, "ToolResultCommitted").filter(({ payload }) => payload.status !== "success")
  const ended = new Set(ofType(acknowledged, "ToolResultCommitted").map(({ payload }) => payload.call_id))
  const inDoubt = ofType(acknowledged, "ToolCallCommitted").flatMap(({ payload }) =>
    ended.has(payload.call_id) ? [] : ["unknown_after_crash"]
  )
  assert.deepStrictEqual(
    doubtful.map(({ payload }) => payload.status),
    inDoubt,
    `${where}: whose end nobody knows was not closed as unknown`
  )
  return plane.events.length
})

/** Every file below a folder, as text. */
const textsBelow = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => existsSync(path) && statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))

export const disposable = Effect.gen(function* () {
  yield* ticking
  const { root } = yield* temporaryWorkspace
  const events = yield* live(undefined, root)
  for (let crash = 1; crash <= events; crash++) yield* live(crash, root)

  // A tool that prints its secret, through a real process in a real workspace.
  const tells = `printf '{"output":'; cat <&"$CHOIR_SECRETS_FD"; echo '}'`
  const options = { runtime: { secret_resources: ["canary"] }, secrets: { canary: CANARY } }
  const secret = yield* externalTool(tells, options)
  const outcome = JSON.stringify(yield* TestClock.withLive(secret.run()))
  assert.notInclude(outcome, CANARY, "a secret came into a result, and so into the log")
  assert.include(outcome, "<redacted>")
  assert.notInclude(textsBelow(secret.root).join("\n"), CANARY, "a secret came into a file")
})
