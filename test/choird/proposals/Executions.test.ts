/** What was approved is carried out once and to the end, however often choird dies on the way (D17, R52-R54). */
import { assert } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { traces } from "../../support/confirmations.ts"
import { describeEngines } from "../../support/engines.ts"
import {
  beginLife,
  IMAGE,
  makeAgentWorld,
  makeProposalHome,
  makeProposer,
  type ProposalHome,
  pushBranch,
  TOOL
} from "../../support/proposals.ts"

const EDIT = { change: [{ op: "set", path: "/budgets/turn_max_steps", value: 12 }], reason: "I need fewer" }

/** How many points of an execution choird may die at is not known before; more than this would be a new kind of execution. */
const DEATHS_MAX = 40
const LIVE = { timeout: 240_000 }

const filesOf = ({ agent }: ProposalHome) => agent.git(["ls-tree", "-r", "--name-only", "main"]).split("\n")
const commitsOf = ({ agent }: ProposalHome) => Number(agent.git(["rev-list", "--count", "main"]))

describeEngines("Executions", (it) => {
  it.effect(
    "a death before or after every single step leads to the same commit, image and words, once (R53)",
    () =>
      Effect.gen(function* () {
        let deaths = 0
        const heads = new Set<string>()
        const home = yield* makeProposalHome
        for (let at = 1; at <= DEATHS_MAX; at += 1) {
          home.agent.git(["update-ref", "refs/heads/main", home.base])
          const world = makeAgentWorld()
          const first = yield* beginLife(home, world, at)
          const { propose, session_id } = yield* makeProposer(home, first)
          const { approval_id } = yield* propose("tool", TOOL)
          yield* first.decide(approval_id, "approved")
          yield* first.execute
          const died = yield* Effect.raceFirst(Effect.as(first.dead, true), Effect.as(first.ended(approval_id), false))
          yield* Scope.close(first.scope, Exit.void)
          if (died) deaths += 1
          const second = yield* beginLife(home, world)
          yield* second.execute
          const row = yield* second.ended(approval_id)
          assert.strictEqual(row.status, "done", `${at}: ${row.outcome}`)
          assert.strictEqual(commitsOf(home), 2)
          assert.deepStrictEqual(filesOf(home), ["README.md", "tools/notes.count", "tools/notes.count.json"])
          assert.strictEqual(home.agent.git(["log", "-1", "--format=%an %ae", "main"]), "Robot robot@example.org")
          heads.add(home.agent.git(["rev-parse", "main^{tree}"]))
          assert.deepStrictEqual([world.runs, world.starts], [IMAGE, 1])
          const { signals, told } = yield* second.within(traces(session_id))
          assert.lengthOf(signals, 2)
          assert.strictEqual(told.filter(({ text }) => text.startsWith("Done: tool notes.count")).length, 1)
          yield* second.within(Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "stopped")))
          yield* Scope.close(second.scope, Exit.void)
          if (!died) break
        }
        assert.isAbove(deaths, 10)
        assert.strictEqual(heads.size, 1)
      }),
    LIVE
  )

  it.effect(
    "a death at every step of a change of config.json leads to the same file and configuration (R53)",
    () =>
      Effect.gen(function* () {
        for (let at = 1; at <= DEATHS_MAX; at += 1) {
          const home = yield* makeProposalHome
          const first = yield* beginLife(home, makeAgentWorld(), at)
          const { propose } = yield* makeProposer(home, first)
          const { approval_id } = yield* propose("config_change", EDIT)
          yield* first.decide(approval_id, "approved")
          yield* first.execute
          const died = yield* Effect.raceFirst(Effect.as(first.dead, true), Effect.as(first.ended(approval_id), false))
          yield* Scope.close(first.scope, Exit.void)
          const second = yield* beginLife(home)
          yield* second.execute
          const row = yield* second.ended(approval_id)
          assert.strictEqual(row.status, "done", `${at}: ${row.outcome}`)
          assert.deepNestedPropertyVal(home.config(), "budgets.turn_max_steps", 12)
          yield* Scope.close(second.scope, Exit.void)
          if (!died) return assert.isAbove(at, 4)
        }
        return assert.fail("it never came to its end")
      }),
    LIVE
  )

  it.effect(
    "merges exactly the approved commit of a branch, and fails when the branch or the ref has moved (R54)",
    () =>
      Effect.gen(function* () {
        const home = yield* makeProposalHome
        const life = yield* beginLife(home)
        const { propose, session_id } = yield* makeProposer(home, life)
        const branch = `proposal/${session_id}/soul`
        const commit = pushBranch(home, branch, { "identity/SOUL.md": "calm\n" })
        const merged = yield* propose("repo_change", { branch, commit, reason: "be calm" })
        const moved = yield* propose("repo_change", { branch, commit, reason: "be calm" })
        const shown = (yield* life.get(merged.approval_id)).shown ?? ""
        for (const fact of [commit, "It changes who the agent is", "new file identity/SOUL.md", "+calm"])
          assert.include(shown, fact)
        yield* life.execute
        yield* life.decide(merged.approval_id, "approved")
        assert.strictEqual((yield* life.ended(merged.approval_id)).status, "done")
        assert.strictEqual(home.head(), commit)
        // The ref has moved since the second one was shown, though it is the same commit: nothing is left to be done about it.
        yield* life.decide(moved.approval_id, "approved")
        const again = yield* life.ended(moved.approval_id)
        assert.deepStrictEqual([again.status, again.outcome?.startsWith("CHANGED:")], ["failed", true])

        const later = `proposal/${session_id}/later`
        home.agent.git([
          "update-ref",
          `refs/heads/${later}`,
          home.agent.git([
            "commit-tree",
            `${pushBranch(home, "x", { "a.txt": "a\n" })}^{tree}`,
            "-p",
            commit,
            "-m",
            "a"
          ])
        ])
        const tip = home.agent.git(["rev-parse", later])
        const third = yield* propose("repo_change", { branch: later, commit: tip, reason: "a" })
        home.agent.git(["update-ref", `refs/heads/${later}`, commit])
        yield* life.decide(third.approval_id, "approved")
        const row = yield* life.ended(third.approval_id)
        assert.deepStrictEqual([row.status, row.outcome?.startsWith("CHANGED:")], ["failed", true])
        assert.strictEqual(home.head(), commit)
      }),
    LIVE
  )

  it.effect(
    "fails as CHANGED when the ref or config.json moved after the person saw the change (R54)",
    () =>
      Effect.gen(function* () {
        const home = yield* makeProposalHome
        const life = yield* beginLife(home)
        const { propose, session_id } = yield* makeProposer(home, life)
        const tool = yield* propose("tool", TOOL)
        const config = yield* propose("config_change", EDIT)
        const pending = yield* propose("config_change", { ...EDIT, reason: "again" })
        const elsewhere = home.agent.commit({ "README.md": "somebody else\n" })
        yield* life.execute
        yield* life.decide(tool.approval_id, "approved")
        const failed = yield* life.ended(tool.approval_id)
        assert.deepStrictEqual([failed.status, failed.outcome?.startsWith("CHANGED:")], ["failed", true])
        assert.strictEqual(home.head(), elsewhere)
        // A change that the operator made and that does not run yet would be applied along with it.
        const written = home.config() as { readonly budgets?: object }
        home.write("config.json", { ...written, heartbeat_interval_ms: 4000 })
        yield* life.decide(config.approval_id, "approved")
        const waiting = yield* life.ended(config.approval_id)
        assert.match(waiting.outcome ?? "", /^CHANGED: .*heartbeat_interval_ms/u)
        home.write("config.json", { ...written, budgets: { turn_max_steps: 3 } })
        yield* life.decide(pending.approval_id, "approved")
        assert.match((yield* life.ended(pending.approval_id)).outcome ?? "", /^CHANGED: budgets\.turn_max_steps/u)
        assert.deepNestedPropertyVal(home.config(), "budgets.turn_max_steps", 3)
        const { signals } = yield* life.within(traces(session_id))
        const notes = signals.map(({ payload }) => (payload as { readonly note: string }).note)
        assert.isTrue(notes.some((note) => note.includes("could not be carried out (CHANGED)")))
        assert.isFalse(notes.some((note) => note.includes("heartbeat")))
      }),
    LIVE
  )

  it.effect(
    "touches nothing when it is rejected or nobody decides, and both are told",
    () =>
      Effect.gen(function* () {
        const home = yield* makeProposalHome
        const life = yield* beginLife(home)
        const { propose, session_id } = yield* makeProposer(home, life)
        const branch = `proposal/${session_id}/soul`
        const commit = pushBranch(home, branch, { "identity/SOUL.md": "calm\n" })
        const rejected = yield* propose("repo_change", { branch, commit, reason: "be calm" })
        const expired = yield* propose("tool", TOOL)
        yield* life.execute
        yield* life.decide(rejected.approval_id, "rejected")
        yield* life.within(
          Effect.flatMap(
            SqlClient.SqlClient,
            (sql) => sql`UPDATE choir_control.pending_approvals SET expires_at = now() - interval '1 second'
              WHERE id = ${BigInt(expired.approval_id)}`
          )
        )
        const late = yield* Effect.flip(life.decide(expired.approval_id, "approved"))
        assert.strictEqual(late.kind, "EXPIRED")
        assert.strictEqual(home.head(), home.base)
        assert.strictEqual(home.agent.git(["rev-parse", branch]), commit)
        const { signals, told } = yield* life.within(traces(session_id))
        assert.deepStrictEqual(
          signals.map(({ payload }) => (payload as { readonly status: string }).status),
          ["rejected", "expired"]
        )
        assert.isTrue(told.some(({ text }) => text.startsWith("Rejected: repo_change")))
        assert.isTrue(told.some(({ text }) => text.includes("timed out: tool notes.count")))
      }),
    LIVE
  )

  it.effect(
    "is decided and carried out after its session has ended (D17), and a failed build leaves the agent as it was",
    () =>
      Effect.gen(function* () {
        const home = yield* makeProposalHome
        const world = { ...makeAgentWorld(), isBroken: true }
        const life = yield* beginLife(home, world)
        const { propose, session_id } = yield* makeProposer(home, life)
        const { approval_id } = yield* propose("tool", TOOL)
        yield* life.within(Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "closed")))
        yield* life.execute
        yield* life.decide(approval_id, "approved")
        const row = yield* life.ended(approval_id)
        assert.deepStrictEqual([row.status, row.outcome], ["failed", "BUILD: a step failed\\u202e"])
        assert.strictEqual(commitsOf(home), 2)
        assert.deepStrictEqual([world.runs, world.starts], ["0000000", 0])
        assert.deepStrictEqual((yield* life.within(traces(session_id))).signals, [])
      }),
    LIVE
  )
})
