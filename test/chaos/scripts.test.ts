/** A script of a skill whose agent is killed at each of its events: real processes, and no request to a provider for it (R90). */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Stream } from "effect"
import type { SessionId } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import { isPrintedEvent, type PrintedEvent } from "#schema/SessionsApi.ts"
import { agreedSkill } from "../support/addSkill.ts"
import { choirctl } from "../support/choirctl.ts"
import { putDatabase, temporaryFolder } from "../support/engines.ts"
import { AGENT, makeInstallation } from "../support/installation.ts"
import { isFull } from "../support/size.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

/** Each of the kills costs a start of the agent. */
const TEST_MS_MAX = (isFull ? 60 : 10) * 60_000
/** Every so many of the script's events has a kill. */
const STEP = isFull ? 1 : 8

const search = (pattern: string, field: string) => ({
  step: `Search for ${pattern}.`,
  tool: "choir.fs.search",
  params: { pattern, path: "${folder}" },
  writes: { [field]: "matches" }
})

const SCRIPT = {
  name: "marks",
  description: "Find marks.",
  contract: {
    execution_class: "deterministic",
    does: "finds marks in the files of a folder",
    does_not: "change a file",
    state: {
      folder: { schema: { type: "string" } },
      todo: { schema: { type: "array" } },
      fixme: { schema: { type: "array" } }
    },
    state_read: ["folder"],
    state_write: ["todo", "fixme"],
    assertions: [{ statement: "one mark to do", path: "todo", op: "count", value: 1 }],
    capabilities: ["fs:read"]
  },
  registry: {
    version: "1.0.0",
    tier: "audit",
    workflow: [search("TODO", "todo"), search("FIXME", "fixme")]
  }
}

/**
 * The facts of events that are the same in each run: times, hashes and ids of calls are not. A search that a kill cut off is granted its locks
 * and run again, since it has no effect.
 */
const factsOf = (events: ReadonlyArray<PrintedEvent>): ReadonlyArray<string> =>
  events.flatMap(({ event: { event_type, payload } }) => {
    if (event_type === "ToolCallCommitted") return []
    const { ended, on, status, tool, to, writes } = payload as Readonly<Record<string, unknown>>
    return [JSON.stringify({ event_type, ended, on, status, tool, to, writes })]
  })

describe("a script whose agent is killed", () => {
  it.live(
    "continues where it was, with the same events, and asks no provider",
    () =>
      Effect.gen(function* () {
        const provider = yield* makeProvider
        yield* provider.otherwise((request) => offlineModel(request, 0))
        const choir = yield* makeInstallation({
          endpoint: provider.endpoint,
          runtime: "process",
          database: putDatabase
        })
        const { api, params } = choir
        const choird = yield* choir.start
        yield* choir.build
        const file = join(yield* temporaryFolder, "marks.json")
        writeFileSync(file, JSON.stringify(SCRIPT))
        const add = yield* agreedSkill(choir.home, [file, "--agent", AGENT])
        assert.strictEqual((yield* choirctl(choir.home, add)).code, 0)
        yield* choir.build
        writeFileSync(join(choir.workspace, "a.txt"), "TODO: prune\n")

        /** Runs the script, kills the agent when its event of this number is stored, and gives the script's events. */
        const run = Effect.fnUntraced(function* (killed_at: number | undefined) {
          yield* Effect.ignore(api.agents.stop({ params }))
          const { session_id } = yield* api.agents.start({ params, payload: { fresh: true } })
          const id = session_id as SessionId
          const asked = (yield* provider.requests.all).length
          const payload = {
            skill: SkillName.make("marks"),
            input: { folder: "." },
            request_id: crypto.randomUUID(),
            wait_ms: 30_000
          }
          yield* Effect.forkScoped(Effect.ignore(api.sessions.startSkill({ params: { id }, payload })))
          let own = 0
          const events = yield* Stream.unwrap(
            api.sessions.events({ params: { id }, query: { from: 1, follow: "true" } })
          ).pipe(
            Stream.filter(isPrintedEvent),
            Stream.filter(({ event }) => event.lane !== "edge"),
            Stream.tap(() =>
              Effect.gen(function* () {
                own += 1
                if (own !== killed_at) return
                const agent = yield* choird.agent
                if (Option.isSome(agent)) process.kill(agent.value, "SIGKILL")
              })
            ),
            Stream.takeUntil(({ event }) => event.event_type === "CoreStopped"),
            Stream.runCollect
          )
          const requests = (yield* provider.requests.all).slice(asked)
          assert.isFalse(requests.some(({ body }) => JSON.stringify(body).includes("Run the skill marks")))
          return events
        })

        const unharmed = yield* run(undefined)
        const whole = factsOf(unharmed)
        assert.isAbove(unharmed.length, 8)
        const end = JSON.parse(whole.at(-1) ?? "{}") as { readonly event_type?: string }
        assert.strictEqual(end.event_type, "CoreStopped")
        for (let killed_at = 1; killed_at < unharmed.length; killed_at += STEP)
          assert.deepStrictEqual(factsOf(yield* run(killed_at)), whole, `killed at event ${killed_at}`)
      }),
    TEST_MS_MAX
  )
})
