import { assert } from "@effect/vitest"
import { Effect, Layer, Option, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { ApprovalId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Signals } from "#src/choird/queues/Signals.ts"
import { append, committed, decide, ended, find, INPUT, request, traces, waiting } from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import { DESK, stores } from "../../support/stores.ts"
import { APPROVALS_PENDING_MAX } from "#src/choird/approvals/askApproval.ts"
import { APPROVALS_UNREAD_MAX } from "#src/choird/approvals/askPerson.ts"
import { APPROVAL_PAYLOAD_BYTES_MAX } from "#src/choird/approvals/requestTypes.ts"

/** One life of choird over the database: what it had in memory is gone with it. */
const life = <A, E>(work: Effect.Effect<A, E, Layer.Success<typeof stores> | SqlClient.SqlClient>) =>
  Effect.provide(work, Layer.fresh(stores))

const timeIsUp = (approval_id: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`UPDATE choir_control.pending_approvals SET expires_at = now() - interval '1 second'
      WHERE id = ${BigInt(approval_id)}`
  )

/** Waits until a session's agent is told how an approval was decided. */
const told = (session_id: Parameters<typeof traces>[0]) =>
  Effect.flatMap(Signals, (signals) =>
    signals.stream(session_id, undefined).pipe(
      Stream.map(({ signal }) => signal),
      Stream.filter(({ type }) => type === "ApprovalResolved"),
      Stream.runHead,
      Effect.map(Option.getOrUndefined)
    )
  )

describeStores("Approvals", (it) => {
  it.effect("gives the agent the reason of a rejection, and of nothing else", () =>
    Effect.gen(function* () {
      const approvals = yield* Approvals
      const talk = yield* waiting("call-yes", "call-no")
      for (const [call, resolution] of [
        ["call-yes", "approved"],
        ["call-no", "rejected"]
      ] as const) {
        const { approval_id } = yield* request(talk, call)
        const { hash } = yield* find(approval_id)
        const reason = "not now"
        yield* approvals.decide({ approval_id, resolution, hash8: hash.slice(0, 8), who: "operator", reason })
        const answer = yield* request(talk, call)
        const said = resolution === "rejected" ? { reason } : {}
        assert.deepStrictEqual<object>(answer, { approval_id, status: resolution, ...said })
      }
    }).pipe(life)
  )

  it.effect("takes one of a hundred racing decisions, and tells the others that there was one (R52)", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-a")
      const { approval_id } = yield* request(talk, "call-a")
      const clicks = Array.from({ length: 100 }, (_, index) =>
        Effect.result(decide(approval_id, index % 2 === 0 ? "approved" : "rejected", `clicker-${index}`))
      )
      const outcomes = yield* Effect.all(clicks, { concurrency: "unbounded" })
      const won = outcomes.filter(({ _tag }) => _tag === "Success")
      assert.lengthOf(won, 1)
      for (const outcome of outcomes)
        if (outcome._tag === "Failure") assert.strictEqual(outcome.failure.kind, "ALREADY_DECIDED")
      const row = yield* find(approval_id)
      assert.deepStrictEqual(won[0]?._tag === "Success" ? won[0].success : undefined, row)
      const { audit, signals } = yield* traces(talk.caller.session_id)
      assert.deepStrictEqual(signals, [{ payload: { approval_id, status: row.status }, acked_rev: null }])
      // A busy database may miss rows of the audit, whose time is short; the row of the approval names its one decider.
      const done = audit.filter(
        ({ action, detail }) => action !== "approval.request" && detail["refused"] === undefined
      )
      assert.isAtMost(done.length, 1)
      assert.match(row.resolved_by ?? "", /^clicker-/u)
    }).pipe(life)
  )

  it.effect("is the same approval for the same call, and refuses another payload under its id (D17)", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-b")
      const racing = yield* Effect.all(
        Array.from({ length: 10 }, () => request(talk, "call-b")),
        { concurrency: "unbounded" }
      )
      assert.lengthOf([...new Set(racing.map(({ approval_id }) => approval_id))], 1)
      const later = talk.inEpoch(2)
      assert.deepStrictEqual(yield* request(later, "call-b"), racing[0])
      const other = yield* Effect.flip(request(talk, "call-b", { input: { to: "eve@example.org" } }))
      assert.strictEqual(other.kind, "CALL_ID_REUSED")
      const { told } = yield* traces(talk.caller.session_id)
      assert.lengthOf(told, 1)
      assert.include(told[0]?.text, `To decide: /approve ${racing[0]?.approval_id} or /reject`)
      assert.include(told[0]?.text, JSON.stringify(INPUT))
    }).pipe(life)
  )

  it.effect("asks only about a call that waits for a person in the stored log, as it stands there (R54)", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-c")
      const kind = (id: string, payload: object = {}) =>
        Effect.map(Effect.flip(request(talk, id, payload)), ({ kind }) => kind)
      assert.strictEqual(yield* kind("call-unknown"), "NOT_OPEN")
      assert.strictEqual(yield* kind("call-c", { input: { to: "eve@example.org" } }), "NOT_OPEN")
      assert.strictEqual(yield* kind("call-c", { tool: "mail.delete" }), "NOT_OPEN")
      assert.strictEqual(yield* kind("call-c", { lane: "core:job" }), "NOT_OPEN")
      assert.strictEqual(yield* kind("call-c", { why: "tainted" }), "NOT_OPEN")
      assert.strictEqual(yield* kind("call-c", { why: "because" }), "BAD_REQUEST")
      assert.strictEqual(yield* kind("call-c", { more: 1 }), "BAD_REQUEST")
      assert.strictEqual(yield* kind("call-c", { input: "x".repeat(APPROVAL_PAYLOAD_BYTES_MAX) }), "TOO_LARGE")
      assert.deepStrictEqual((yield* traces(talk.caller.session_id)).told, [])
    }).pipe(life)
  )

  it.effect("refuses what would be one too many for a person", () =>
    Effect.gen(function* () {
      // As many as a person reads one after the other in a chat.
      assert.isAtMost(APPROVALS_PENDING_MAX, 8)
      const ids = Array.from({ length: APPROVALS_PENDING_MAX + 1 }, (_, index) => `call-d-${index}`)
      const talk = yield* waiting(...ids)
      const outcomes = yield* Effect.forEach(ids, (id) => Effect.result(request(talk, id)))
      const failures = outcomes.flatMap((outcome) => (outcome._tag === "Failure" ? [outcome.failure.kind] : []))
      assert.deepStrictEqual(failures, ["APPROVALS_FULL"])
      assert.strictEqual(
        (yield* Effect.flatMap(Approvals, ({ pending }) => pending)).get(talk.caller.agent_id),
        APPROVALS_PENDING_MAX
      )
    }).pipe(life)
  )

  it.effect(
    "refuses a request where too many messages about approvals are unread, until a person reads or decides",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const talk = yield* waiting("call-first", "call-read", "call-decided")
        const { agent_id, session_id } = talk.caller
        const { approval_id } = yield* request(talk, "call-first")
        yield* sql`INSERT INTO choir_control.outbox
        (source, source_id, part, gateway, dm, agent_id, session_id, kind, text)
        SELECT 'choird', 'approval/' || ${approval_id}::text || '/more-' || i, 0, 'terminal', ${DESK}, ${agent_id},
          ${session_id}, 'notice', 'x' FROM generate_series(1, ${APPROVALS_UNREAD_MAX - 1}::int) AS i`
        assert.strictEqual((yield* Effect.flip(request(talk, "call-read"))).kind, "APPROVALS_FULL")
        assert.strictEqual((yield* Effect.flatMap(Approvals, ({ pending }) => pending)).get(agent_id), 1)
        yield* sql`UPDATE choir_control.outbox SET delivered_at = now()
        WHERE agent_id = ${agent_id} AND source_id = ${`approval/${approval_id}/more-1`}`
        assert.strictEqual((yield* request(talk, "call-read")).status, "pending")
        assert.strictEqual((yield* Effect.flip(request(talk, "call-decided"))).kind, "APPROVALS_FULL")
        // With choirctl, where nobody ever opens the chat.
        yield* decide(approval_id, "approved")
        assert.strictEqual((yield* request(talk, "call-decided")).status, "pending")
      }).pipe(life)
  )

  it.effect("tells the chat that was asked about a call how an operator decided elsewhere", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-told")
      const { approval_id } = yield* request(talk, "call-told")
      const approvals = yield* Approvals
      const { hash } = yield* approvals.get(approval_id)
      yield* approvals.decide({
        approval_id,
        resolution: "rejected",
        hash8: hash.slice(0, 8),
        who: "operator",
        reason: null
      })
      const { told } = yield* traces(talk.caller.session_id)
      assert.match(told.at(-1)?.text ?? "", new RegExp(`^Rejected: .*\\(approval ${approval_id}\\)\\.$`, "u"))
    }).pipe(life)
  )

  it.effect("refuses a decision about another payload than the stored one (R54)", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-e")
      const { approval_id } = yield* request(talk, "call-e")
      const approvals = yield* Approvals
      const wrong = { approval_id, resolution: "approved", hash8: "00000000", who: "operator", reason: null } as const
      assert.strictEqual((yield* Effect.flip(approvals.decide(wrong))).kind, "CHANGED")
      assert.strictEqual((yield* find(approval_id)).status, "pending")
      const nobody = yield* Effect.flip(approvals.decide({ ...wrong, approval_id: "999999999" }))
      assert.strictEqual(nobody.kind, "UNKNOWN_APPROVAL")
      const { audit } = yield* traces(talk.caller.session_id)
      assert.deepInclude(audit.at(-1)?.detail, { refused: "CHANGED", approval_id })
    }).pipe(life)
  )

  it.effect("survives a restart of choird at each step, and runs what was approved once (R52, R53)", () =>
    Effect.gen(function* () {
      const talk = yield* life(waiting("call-f"))
      const { session_id } = talk.caller
      const { approval_id } = yield* life(request(talk, "call-f"))
      assert.strictEqual((yield* life(find(approval_id))).status, "pending")
      yield* life(decide(approval_id, "approved"))
      // The decision waits for the agent, and its next request acknowledges it.
      assert.deepStrictEqual(yield* life(told(session_id)), {
        type: "ApprovalResolved",
        approval_id: ApprovalId.make(approval_id),
        status: "approved"
      })
      assert.deepStrictEqual(yield* life(request(talk.inEpoch(2), "call-f")), { approval_id, status: "approved" })
      assert.isNotNull((yield* traces(session_id)).signals[0]?.acked_rev)
      const at = talk.rev
      yield* life(append(talk.commit(committed("call-f", approval_id)), at))
      assert.strictEqual((yield* life(find(approval_id))).status, "executing")
      // Whoever asks now may go on all the same: what happens after the approval is the agent's to know.
      assert.strictEqual((yield* life(request(talk, "call-f"))).status, "approved")
      assert.strictEqual((yield* life(Effect.flip(decide(approval_id, "rejected")))).kind, "ALREADY_DECIDED")
      yield* life(append(talk.commit(ended("call-f", "success")), at + 1))
      assert.deepInclude(yield* life(find(approval_id)), { status: "done", outcome: "success" })
      const { audit } = yield* traces(session_id)
      assert.deepStrictEqual(
        audit.map(({ action, detail }) => [action, detail["refused"]]),
        [
          ["approval.request", undefined],
          ["approval.approve", undefined],
          ["approval.reject", "ALREADY_DECIDED"]
        ]
      )
    })
  )

  it.effect("expires what nobody decided in time, also when that was while choird was away (R53)", () =>
    Effect.gen(function* () {
      const talk = yield* life(waiting("call-g", "call-h"))
      const { session_id } = talk.caller
      const overdue = yield* life(request(talk, "call-g"))
      const later = yield* life(request(talk, "call-h"))
      yield* timeIsUp(overdue.approval_id)
      assert.deepInclude(yield* life(told(session_id)), { approval_id: overdue.approval_id, status: "expired" })
      assert.strictEqual((yield* life(find(later.approval_id))).status, "pending")
      const refused = yield* life(Effect.flip(decide(overdue.approval_id, "approved")))
      assert.strictEqual(refused.kind, "EXPIRED")
      const { audit, told: messages } = yield* traces(session_id)
      assert.include(messages.at(-1)?.text, `Approval ${overdue.approval_id} timed out: mail.send`)
      assert.lengthOf(
        audit.filter(({ action }) => action === "approval.expire"),
        1
      )
    })
  )

  it.effect("expires by its timer, without anybody looking (R53)", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-i")
      const { approval_id } = yield* request(talk, "call-i")
      yield* timeIsUp(approval_id)
      // A second request wakes the timer, as each new row does.
      const other = yield* waiting("call-j")
      yield* request(other, "call-j")
      assert.deepInclude(yield* told(talk.caller.session_id), { approval_id, status: "expired" })
    }).pipe(life)
  )

  it.effect("expires with its session, and with its call", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-k", "call-l")
      const { session_id } = talk.caller
      const cancelled = yield* request(talk, "call-k")
      const left = yield* request(talk, "call-l")
      const at = talk.rev
      yield* append(talk.commit(ended("call-k", "cancelled")), at)
      assert.deepInclude(yield* find(cancelled.approval_id), { status: "expired", reason: "the call has ended" })
      assert.strictEqual((yield* request(talk, "call-k")).status, "expired")
      yield* Effect.flatMap(SessionStore, (sessions) => sessions.end(session_id, "crashed"))
      const refused = yield* Effect.flip(decide(left.approval_id, "approved"))
      assert.strictEqual(refused.kind, "SESSION_ENDED")
      assert.strictEqual((yield* find(left.approval_id)).status, "expired")
      // Nobody is there to be told.
      assert.deepStrictEqual((yield* traces(session_id)).signals, [])
    }).pipe(life)
  )

  it.effect("keeps how an approved call ended, and that one never ran", () =>
    Effect.gen(function* () {
      const talk = yield* waiting("call-m", "call-n")
      const asked = yield* Effect.forEach(["call-m", "call-n"], (id) => request(talk, id))
      const [failing, dropped] = asked.map(({ approval_id }) => approval_id)
      yield* decide(failing ?? "", "approved")
      yield* decide(dropped ?? "", "approved")
      const at = talk.rev
      talk.commit(committed("call-m", failing ?? ""), ended("call-m", "error"), ended("call-n", "cancelled"))
      yield* append(talk, at)
      assert.deepInclude(yield* find(failing ?? ""), { status: "failed", outcome: "error" })
      assert.deepInclude(yield* find(dropped ?? ""), { status: "approved", outcome: "not run: cancelled" })
      assert.isTrue((yield* traces(talk.caller.session_id)).signals.every(({ acked_rev }) => acked_rev !== null))
    }).pipe(life)
  )

  for (const [what, claimed, resolution] of [
    ["that nobody decided on", "its own", undefined],
    ["that a person refused", "its own", "rejected"],
    ["of another call", "another", "approved"],
    ["that there is not", "none", undefined]
  ] as const)
    it.effect(`freezes a session whose call goes on by an approval ${what}, and stores none of it (D16, R54)`, () =>
      Effect.gen(function* () {
        const talk = yield* waiting("call-p", "call-q")
        const { session_id } = talk.caller
        const own = yield* request(talk, "call-p")
        const other = yield* request(talk, "call-q")
        const decided = claimed === "another" ? other : own
        if (resolution !== undefined) yield* decide(decided.approval_id, resolution)
        const at = talk.rev
        const names = { "its own": own.approval_id, another: other.approval_id, none: "999999999" }
        talk.commit(committed("call-p", names[claimed]), ended("call-p", "success"))
        assert.deepInclude(yield* append(talk, at), { action: "CONFLICT", ack_rev: at })
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql`SELECT last_rev, frozen_reason FROM choir_control.sessions
          WHERE session_id = ${session_id}`
        assert.deepStrictEqual(row, {
          last_rev: at,
          frozen_reason: `event ${at + 1} commits a call that no person approved`
        })
        const statuses = [(yield* find(own.approval_id)).status, (yield* find(other.approval_id)).status]
        assert.deepStrictEqual(statuses, [
          claimed === "another" ? "pending" : (resolution ?? "pending"),
          claimed === "another" ? "approved" : "pending"
        ])
      }).pipe(life)
    )
})
