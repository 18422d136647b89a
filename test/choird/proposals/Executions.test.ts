/** What was approved is carried out as it was seen, and nothing else is (D17, R52, R54, R55). */
import { assert } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { ProofOfApproval } from "#src/choird/approvals/ProofOfApproval.ts"
import { advance, begin, nextExecutions } from "#src/choird/proposals/Executions.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { traces } from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import {
  beginLife,
  makeAgentWorld,
  makeProposalHome,
  makeProposer,
  openProposals,
  type ProposalHome,
  pushBranch,
  TOOL
} from "../../support/proposals.ts"

const EDIT = { change: [{ op: "set", path: "/budgets/turn_max_steps", value: 12 }], reason: "I need fewer" }
const LIVE = { timeout: 300_000 }

const commitsOf = ({ agent }: ProposalHome) => Number(agent.git(["rev-list", "--count", "main"]))

const assertChanged = ({ outcome, status }: { readonly outcome: string; readonly status: string }, words = /./u) => {
  assert.deepStrictEqual([status, outcome.startsWith("CHANGED: ")], ["failed", true], outcome)
  assert.match(outcome, words)
}

/** Changes the row of an approval behind choird's back. */
const tamper = (
  approval_id: string,
  how: (sql: SqlClient.SqlClient, id: bigint) => Effect.Effect<unknown, SqlError.SqlError>
) => Effect.flatMap(SqlClient.SqlClient, (sql) => how(sql, BigInt(approval_id)))

describeStores("Executions", (it) => {
  it.effect(
    "merges exactly the approved commit of a branch, and fails when the branch or the ref has moved (R54)",
    () =>
      Effect.gen(function* () {
        const { carried, home, life, propose, session_id } = yield* openProposals()
        const branch = `proposal/${session_id}/soul`
        const commit = pushBranch(home, branch, { "identity/SOUL.md": "calm\n" })
        const merged = yield* propose("repo_change", { branch, commit, reason: "be calm" })
        const moved = yield* propose("repo_change", { branch, commit, reason: "be calm" })
        const shown = (yield* life.get(merged.approval_id)).shown ?? ""
        for (const fact of [commit, "It changes who the agent is", "new file identity/SOUL.md", "+calm"])
          assert.include(shown, fact)
        yield* life.execute
        assert.strictEqual((yield* carried(merged.approval_id)).status, "done")
        assert.strictEqual(home.head(), commit)
        // The ref has moved since the second one was shown, though it is the same commit: nothing is left to be done about it.
        assertChanged(yield* carried(moved.approval_id))

        const later = `proposal/${session_id}/later`
        const tip = pushBranch(home, later, { "a.txt": "a\n" }, commit)
        const third = yield* propose("repo_change", { branch: later, commit: tip, reason: "a" })
        home.agent.git(["update-ref", `refs/heads/${later}`, commit])
        assertChanged(yield* carried(third.approval_id))

        // A branch that went on still contains the approved commit.
        const longer = `proposal/${session_id}/longer`
        const approved = pushBranch(home, longer, { "b.txt": "b\n" }, commit)
        const fourth = yield* propose("repo_change", { branch: longer, commit: approved, reason: "b" })
        const newer = pushBranch(home, longer, { "c.txt": "c\n" }, approved)
        assertChanged(yield* carried(fourth.approval_id), new RegExp(`is now at ${newer}`, "u"))
        assert.strictEqual(home.head(), commit)
      }),
    LIVE
  )

  it.effect(
    "fails as CHANGED when the ref or config.json moved after the person saw the change (R54)",
    () =>
      Effect.gen(function* () {
        const { carried, home, life, propose, session_id } = yield* openProposals()
        const tool = yield* propose("tool", TOOL)
        const config = yield* propose("config_change", EDIT)
        const pending = yield* propose("config_change", { ...EDIT, reason: "again" })
        const elsewhere = home.agent.commit({ "README.md": "somebody else\n" })
        yield* life.execute
        assertChanged(yield* carried(tool.approval_id))
        assert.strictEqual(home.head(), elsewhere)
        // A change that the operator made and that does not run yet would be applied along with it.
        const written = home.config() as { readonly budgets?: object }
        home.write("config.json", { ...written, heartbeat_interval_ms: 4000 })
        assertChanged(yield* carried(config.approval_id), /heartbeat_interval_ms/u)
        home.write("config.json", { ...written, budgets: { turn_max_steps: 3 } })
        assertChanged(yield* carried(pending.approval_id), /budgets\.turn_max_steps/u)
        assert.deepNestedPropertyVal(home.config(), "budgets.turn_max_steps", 3)
        // The same where the proposal itself would change nothing of the file.
        home.write("config.json", written)
        const idle = yield* propose("config_change", EDIT)
        home.write("config.json", { ...written, budgets: { turn_max_steps: 12 }, heartbeat_interval_ms: 4000 })
        assertChanged(yield* carried(idle.approval_id), /heartbeat_interval_ms/u)
        const { config: running } = yield* life.within(Effect.flatMap(ConfigStore, ({ current }) => current))
        assert.notStrictEqual(running.heartbeat_interval_ms, 4000)
        const { signals } = yield* life.within(traces(session_id))
        const notes = signals.map(({ payload }) => (payload as { readonly note: string }).note)
        assert.isTrue(notes.some((note) => note.includes("could not be carried out (CHANGED)")))
        assert.isFalse(notes.some((note) => note.includes("heartbeat")))
      }),
    LIVE
  )

  it.effect(
    "takes an edit of config.json back that was written, when somebody changed the file further before it was applied",
    () =>
      Effect.gen(function* () {
        const home = yield* makeProposalHome
        const written = home.config() as object
        const theirs = { ...written, heartbeat_interval_ms: 4000 }
        const edited = { ...theirs, budgets: { turn_max_steps: 12 } }
        const world = makeAgentWorld()
        // Between the load and the apply: what was written is what the look before the write allowed.
        world.loaded = () => {
          home.write("config.json", edited)
          delete world.loaded
        }
        const life = yield* beginLife(home, world)
        const { propose } = yield* makeProposer(home, life)
        const { approval_id } = yield* propose("config_change", EDIT)
        yield* life.execute
        yield* life.decide(approval_id, "approved")
        const row = yield* life.ended(approval_id)
        assertChanged({ ...row, outcome: row.outcome ?? "" }, /heartbeat_interval_ms/u)
        assert.deepStrictEqual<unknown>(home.config(), theirs, "what somebody else wrote stays")
        const { config: running } = yield* life.within(Effect.flatMap(ConfigStore, ({ current }) => current))
        assert.strictEqual(running.heartbeat_interval_ms, 5000)
        assert.notStrictEqual(running.budgets.turn_max_steps, 12)
      }),
    LIVE
  )

  it.effect(
    "touches nothing when it is rejected or nobody decides, and both are told",
    () =>
      Effect.gen(function* () {
        const { home, life, propose, session_id } = yield* openProposals()
        const branch = `proposal/${session_id}/soul`
        const commit = pushBranch(home, branch, { "identity/SOUL.md": "calm\n" })
        const rejected = yield* propose("repo_change", { branch, commit, reason: "be calm" })
        const expired = yield* propose("tool", TOOL)
        yield* life.execute
        yield* life.decide(rejected.approval_id, "rejected")
        const late = (sql: SqlClient.SqlClient, id: bigint) =>
          sql`UPDATE choir_control.pending_approvals SET expires_at = now() - interval '1 second' WHERE id = ${id}`
        yield* life.within(tamper(expired.approval_id, late))
        const refusal = yield* Effect.flip(life.decide(expired.approval_id, "approved"))
        assert.strictEqual(refusal.kind, "EXPIRED")
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
    "carry out no other payload than the one whose digest a person approved (R54)",
    () =>
      Effect.gen(function* () {
        const { carried, home, life, propose } = yield* openProposals()
        const { approval_id } = yield* propose("tool", TOOL)
        const other = JSON.stringify({ ...TOOL, files: [{ ...TOOL.files[0], content: "#!/bin/sh\nrm -rf notes\n" }] })
        const swap = (sql: SqlClient.SqlClient, id: bigint) =>
          sql`UPDATE choir_control.pending_approvals SET canonical = ${other} WHERE id = ${id}`
        yield* life.within(tamper(approval_id, swap))
        yield* life.execute
        assertChanged(yield* carried(approval_id), /not the one that was approved/u)
        assert.strictEqual(home.head(), home.base)
      }),
    LIVE
  )

  it.effect(
    "begin and continue nothing that is not approved in the table, whatever proof they are given (R55)",
    () =>
      Effect.gen(function* () {
        const { life, propose } = yield* openProposals()
        const { approval_id } = yield* propose("tool", TOOL)
        const row = yield* life.get(approval_id)
        const sql = yield* life.within(SqlClient.SqlClient)
        const standing = { step: "commit", job: {} } as const
        for (const status of ["pending", "rejected", "expired", "done", "failed"]) {
          yield* sql`UPDATE choir_control.pending_approvals SET status = ${status} WHERE id = ${BigInt(approval_id)}`
          assert.deepStrictEqual(
            (yield* life.within(nextExecutions)).filter(({ row: { approval_id: id } }) => id === approval_id),
            []
          )
          const forged =
            ProofOfApproval.of({ ...row, status: "approved" }) ?? assert.fail("a row in approved makes a proof")
          assert.isTrue(Exit.isFailure(yield* Effect.exit(life.within(begin(forged, standing)))), status)
          assert.isTrue(Exit.isFailure(yield* Effect.exit(life.within(advance(forged, standing)))), status)
          assert.strictEqual((yield* life.get(approval_id)).status, status)
        }
      }),
    LIVE
  )

  it.effect(
    "is decided and carried out after its session has ended (D17), and a failed build leaves the agent as it was",
    () =>
      Effect.gen(function* () {
        const world = { ...makeAgentWorld(), isBroken: true }
        const { carried, home, life, propose, session_id } = yield* openProposals({ world })
        const { approval_id } = yield* propose("tool", TOOL)
        yield* life.within(Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "closed")))
        yield* life.execute
        assert.deepStrictEqual(yield* carried(approval_id), {
          status: "failed",
          outcome: "BUILD: a step failed\\u202e"
        })
        assert.strictEqual(commitsOf(home), 2)
        assert.deepStrictEqual([world.runs, world.starts], ["0000000", 0])
        assert.deepStrictEqual((yield* life.within(traces(session_id))).signals, [])
      }),
    LIVE
  )

  it.effect(
    "leave config.json as it was where the change cannot be loaded, so that no later start takes over what has failed",
    () =>
      Effect.gen(function* () {
        const world = { ...makeAgentWorld(), isBroken: true }
        const { carried, home, life, propose } = yield* openProposals({ world })
        const before = home.config()
        const change = [...EDIT.change, { op: "set", path: "/budgets/max_core_jobs", value: 2 }]
        yield* life.execute
        for (const payload of [EDIT, { ...EDIT, change }])
          assert.deepStrictEqual(yield* carried((yield* propose("config_change", payload)).approval_id), {
            status: "failed",
            outcome: "CONFIG: a repository cannot be used"
          })
        assert.deepStrictEqual(home.config(), before)
        home.write("config.json", { ...(before as object), budgets: { turn_max_steps: 5 } })
        yield* carried((yield* propose("config_change", EDIT)).approval_id)
        assert.deepNestedPropertyVal(home.config(), "budgets.turn_max_steps", 5)
      }),
    LIVE
  )
})
