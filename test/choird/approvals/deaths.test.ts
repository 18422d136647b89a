/** A death of choird before or after each single step of an execution leads to the same end, once (D17, R53). */
import { assert } from "@effect/vitest"
import { Effect, Exit, type Schema, Scope } from "effect"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { traces } from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import { SIZE } from "../../support/size.ts"
import {
  beginLife,
  IMAGE,
  makeAgentWorld,
  makeProposalHome,
  makeProposer,
  type ProposalHome,
  TOOL
} from "../../support/proposals.ts"

const EDIT = { change: [{ op: "set", path: "/budgets/turn_max_steps", value: 12 }], reason: "I need fewer" }

/** How many points of an execution choird may die at is not known before; more than this would be a new kind of execution. */
const DEATHS_MAX = 40

const filesOf = ({ agent }: ProposalHome) => agent.git(["ls-tree", "-r", "--name-only", "main"]).split("\n")
const commitsOf = ({ agent }: ProposalHome) => Number(agent.git(["rev-list", "--count", "main"]))

/** One proposal over two lives of choird, of which the first ends at its tick `at`, if its execution has so many. */
const twoLives = Effect.fnUntraced(function* (home: ProposalHome, at: number, kind: ProposalKind, input: Schema.Json) {
  const world = makeAgentWorld()
  const first = yield* beginLife(home, world, at)
  const { propose, session_id } = yield* makeProposer(home, first)
  const { approval_id } = yield* propose(kind, input)
  yield* first.decide(approval_id, "approved")
  yield* first.execute
  const died = yield* Effect.raceFirst(Effect.as(first.dead, true), Effect.as(first.ended(approval_id), false))
  yield* Scope.close(first.scope, Exit.void)
  const second = yield* beginLife(home, world)
  yield* second.execute
  const row = yield* second.ended(approval_id)
  assert.strictEqual(row.status, "done", `${at}: ${row.outcome}`)
  const traced = yield* second.within(traces(session_id))
  yield* second.within(Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "stopped")))
  yield* Scope.close(second.scope, Exit.void)
  return { died, world, ...traced }
})

describeStores("Executions, cut short,", (it) => {
  it.effect("come to the same commit, image and words, once, after a death before or after its steps (R53)", () =>
    Effect.gen(function* () {
      let deaths = 0
      const heads = new Set<string>()
      const home = yield* makeProposalHome
      for (let at = 1; at <= DEATHS_MAX; at += SIZE.deathEvery) {
        home.agent.git(["update-ref", "refs/heads/main", home.base])
        const { died, signals, told, world } = yield* twoLives(home, at, "tool", TOOL)
        assert.strictEqual(commitsOf(home), 2)
        assert.deepStrictEqual(filesOf(home), ["README.md", "tools/notes.count", "tools/notes.count.json"])
        assert.strictEqual(home.agent.git(["log", "-1", "--format=%an %ae", "main"]), "Robot robot@example.org")
        heads.add(home.agent.git(["rev-parse", "main^{tree}"]))
        assert.deepStrictEqual([world.runs, world.starts], [IMAGE, 1])
        assert.lengthOf(signals, 2)
        assert.strictEqual(told.filter(({ text }) => text.startsWith("Done: tool notes.count")).length, 1)
        if (!died) break
        deaths += 1
      }
      assert.isAbove(deaths * SIZE.deathEvery, 10)
      assert.strictEqual(heads.size, 1)
    })
  )

  it.effect("come to the same config.json after a death at every step of its change (R53)", () =>
    Effect.gen(function* () {
      for (let at = 1; at <= DEATHS_MAX; at += 1) {
        const home = yield* makeProposalHome
        const { died } = yield* twoLives(home, at, "config_change", EDIT)
        assert.deepNestedPropertyVal(home.config(), "budgets.turn_max_steps", 12)
        if (!died) return assert.isAbove(at, 4)
      }
      return assert.fail("it never came to its end")
    })
  )
})
