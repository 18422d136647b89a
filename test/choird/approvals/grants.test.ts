import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import type { EventDraft } from "#schema/Event.ts"
import { GrantId } from "#schema/Ids.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { GRANT_USES_MAX } from "#src/choird/approvals/grantRows.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import {
  append,
  committed,
  decide,
  ended,
  find,
  INPUT,
  proposed,
  request,
  requested,
  traces
} from "../../support/confirmations.ts"
import { describeStores } from "../../support/engines.ts"
import { newTalk, stores, type Talk, userMsg } from "../../support/stores.ts"

let messages = 3_000_000

/** A session in which these calls of `mail.send` wait, each with this input. */
const waiting = Effect.fnUntraced(function* (...calls: ReadonlyArray<readonly [id: string, input?: Schema.Json]>) {
  const talk = yield* newTalk
  messages += 1
  const output: any = proposed(...calls.map(([id]) => id))
  const drafts = calls.map(([id, input = INPUT]) => {
    const draft: any = requested(id)
    return { ...draft, payload: { ...draft.payload, input } }
  })
  const tool_calls = output.payload.tool_calls.map((call: object, index: number) => ({
    ...call,
    input: calls[index]?.[1] ?? INPUT
  }))
  talk.commit(userMsg(messages), { ...output, payload: { ...output.payload, tool_calls } }, ...drafts)
  yield* append(talk, 0)
  return talk
})

const ask = (talk: Talk, id: string, input: Schema.Json = INPUT) => request(talk, id, { input })

/** Approves a call, and more like it for the agent. */
const grantBy = (approval_id: string, grant: "job" | "agent" = "agent") =>
  Effect.gen(function* () {
    const approvals = yield* Approvals
    const { hash } = yield* find(approval_id)
    const who = "gateway:bot/phone"
    return yield* approvals.decide({
      approval_id,
      resolution: "approved",
      hash8: hash.slice(0, 8),
      who,
      reason: null,
      grant
    })
  })

const byGrant = (id: string, approval_id: string, grant_id: string): EventDraft => {
  const draft: any = committed(id, approval_id)
  return { ...draft, payload: { ...draft.payload, grant_id: GrantId.make(grant_id) } }
}

/** An image of the agent's session with these tools, as its version.json says. */
const withTools = ({ caller: { agent_id } }: Talk, digit: string) =>
  Effect.map(ConfigStore, ({ home }) => {
    const folder = join(home, "images", agent_id, "0000000", "choir")
    mkdirSync(folder, { recursive: true })
    const version = {
      agent_id,
      image_version: "0000000",
      global_repo_commit: "0".repeat(40),
      agent_repo_commit: "0".repeat(40),
      tool_manifest_hash: digit.repeat(64),
      skill_manifest_hash: "0".repeat(64)
    }
    writeFileSync(join(folder, "version.json"), JSON.stringify(version))
  })

describeStores("standing grants", (it) => {
  it.effect("approve the calls inside their words without asking, and are named in the log and the row", () =>
    Effect.gen(function* () {
      const approvals = yield* Approvals
      const [EVE, CC] = [{ to: "eve@example.org" }, { ...INPUT, cc: "eve@example.org" }]
      const talk = yield* waiting(["a"], ["b"], ["c", EVE], ["d", CC])
      const first = yield* ask(talk, "a")
      assert.strictEqual(first.status, "pending")
      yield* grantBy(first.approval_id)
      const [grant] = yield* approvals.grants({ agent_id: talk.caller.agent_id, all: false })
      assert.deepInclude(grant, { scope: "agent", uses: 0, uses_max: GRANT_USES_MAX, created_by: "gateway:bot/phone" })
      assert.include(grant?.words, 'to: "ada@example.org"')
      const second = yield* ask(talk, "b")
      assert.deepStrictEqual([second.status, second.grant_id], ["approved", grant?.grant_id])
      // The same request again is the same approval, and not another use.
      assert.deepStrictEqual(yield* ask(talk, "b"), second)
      assert.strictEqual((yield* approvals.grants({ all: false }))[0]?.uses, 1)
      for (const [id, input] of [
        ["c", EVE],
        ["d", CC]
      ] as const)
        assert.strictEqual((yield* ask(talk, id, input)).status, "pending", id)
      const { audit, told } = yield* traces(talk.caller.session_id)
      assert.strictEqual(audit.filter(({ action }) => action === "approval.approve").length, 2)
      assert.lengthOf(
        told.filter(({ text }) => text.includes(`(number ${second.approval_id})`)),
        0
      )
      const from = talk.rev
      talk.commit(byGrant("b", second.approval_id, second.grant_id ?? ""), ended("b", "success"))
      yield* append(talk, from)
      const used = yield* find(second.approval_id)
      assert.deepStrictEqual([used.status, used.resolved_by], ["done", `grant:${grant?.grant_id}`])
      assert.propertyVal(talk.events.at(-2)?.payload, "grant_id", grant?.grant_id)
    }).pipe(Effect.provide(stores))
  )

  it.effect("are not what an agent says: an event that names another one is not stored", () =>
    Effect.gen(function* () {
      const events = yield* EventStore
      const talk = yield* waiting(["e"])
      const { approval_id } = yield* ask(talk, "e")
      yield* grantBy(approval_id)
      const from = talk.rev
      talk.commit(byGrant("e", approval_id, "1"))
      const answer = yield* events.append(talk.caller, talk.heartbeat(from))
      assert.strictEqual(answer.action, "CONFLICT")
      assert.strictEqual((yield* find(approval_id)).status, "approved")
    }).pipe(Effect.provide(stores))
  )

  it.effect("end at once when they are revoked, at their number and at their date", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const approvals = yield* Approvals
      const talk = yield* waiting(["f"], ["g"], ["h"], ["i"], ["j"])
      const { agent_id } = talk.caller
      yield* grantBy((yield* ask(talk, "f")).approval_id)
      const [grant] = yield* approvals.grants({ agent_id, all: false })
      const grant_id = grant?.grant_id ?? ""
      const change = (set: string) => sql.unsafe(`UPDATE choir_control.grants SET ${set} WHERE grant_id = ${grant_id}`)
      assert.strictEqual((yield* ask(talk, "g")).status, "approved")
      yield* change("uses = uses_max")
      assert.strictEqual((yield* ask(talk, "h")).status, "pending")
      yield* change("uses = 1, until = now() - interval '1 second'")
      assert.strictEqual((yield* ask(talk, "i")).status, "pending")
      assert.deepStrictEqual(yield* approvals.grants({ agent_id, all: false }), [])
      yield* change("until = now() + interval '1 day'")
      const other = yield* newTalk
      const theirs = { grant_id, agent_id: other.caller.agent_id, who: "gateway:bot/phone" }
      assert.isUndefined(yield* approvals.revokeGrant(theirs))
      const revoked = yield* approvals.revokeGrant({ grant_id, agent_id, who: "gateway:bot/phone" })
      assert.isNotNull(revoked?.revoked_at)
      assert.strictEqual((yield* ask(talk, "j")).status, "pending")
      const again = yield* approvals.revokeGrant({ grant_id, who: "operator" })
      assert.strictEqual(again?.revoked_at, revoked?.revoked_at)
      assert.lengthOf(yield* approvals.grants({ agent_id, all: true }), 1)
    }).pipe(Effect.provide(stores))
  )

  it.effect("of a job are refused where no job asks, and then nothing is decided", () =>
    Effect.gen(function* () {
      const talk = yield* waiting(["k"])
      const { approval_id } = yield* ask(talk, "k")
      const refused = yield* Effect.flip(grantBy(approval_id, "job"))
      assert.strictEqual(refused.kind, "NO_GRANT")
      assert.strictEqual((yield* find(approval_id)).status, "pending")
    }).pipe(Effect.provide(stores))
  )

  it.effect("end where the image has other tools than the person knew", () =>
    Effect.gen(function* () {
      const approvals = yield* Approvals
      const talk = yield* waiting(["n"], ["o"], ["p"], ["q"])
      const { agent_id } = talk.caller
      yield* withTools(talk, "1")
      yield* grantBy((yield* ask(talk, "n")).approval_id)
      assert.strictEqual((yield* ask(talk, "o")).status, "approved")
      yield* withTools(talk, "2")
      assert.strictEqual((yield* ask(talk, "p")).status, "pending")
      assert.deepStrictEqual(yield* approvals.grants({ agent_id, all: false }), [])
      const [ended] = yield* approvals.grants({ agent_id, all: true })
      assert.isNotNull(ended?.revoked_at)
      // Nor does it come back with the tools of before.
      yield* withTools(talk, "1")
      assert.strictEqual((yield* ask(talk, "q")).status, "pending")
    }).pipe(Effect.provide(stores))
  )

  it.effect("and decisions are about the tool that the person knew: a call that waits goes to no other one", () =>
    Effect.gen(function* () {
      const talk = yield* waiting(["r"], ["s"])
      yield* withTools(talk, "1")
      const [decided, undecided] = [yield* ask(talk, "r"), yield* ask(talk, "s")]
      yield* decide(decided.approval_id, "approved")
      assert.strictEqual((yield* ask(talk, "r")).status, "approved")
      yield* withTools(talk, "2")
      for (const [id, { approval_id }] of [
        ["r", decided],
        ["s", undecided]
      ] as const) {
        const refused = yield* Effect.flip(ask(talk, id))
        assert.strictEqual(refused.kind, "CHANGED")
        assert.include(refused.reason, `approval ${approval_id}`)
      }
      const from = talk.rev
      talk.commit(ended("r", "cancelled"), ended("s", "cancelled"))
      yield* append(talk, from)
      assert.deepStrictEqual(
        [(yield* find(decided.approval_id)).outcome, (yield* find(undecided.approval_id)).status],
        ["not run: cancelled", "expired"]
      )
    }).pipe(Effect.provide(stores))
  )

  it.effect("with the words of an earlier Choir, which left more open, cover nothing and end", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const approvals = yield* Approvals
      const talk = yield* waiting(["t"], ["u"])
      const { agent_id } = talk.caller
      yield* grantBy((yield* ask(talk, "t")).approval_id)
      const words = { tool: "mail.send", arguments: ["body", "to"], recipients: [INPUT.to], paths: [], hosts: [] }
      yield* sql`UPDATE choir_control.grants SET words = ${JSON.stringify(words)}::jsonb WHERE agent_id = ${agent_id}`
      assert.match(
        (yield* approvals.grants({ agent_id, all: false }))[0]?.words ?? "",
        /^nothing any more \(an earlier Choir wrote it\); /u
      )
      assert.strictEqual((yield* ask(talk, "u")).status, "pending")
      assert.isNotNull((yield* approvals.grants({ agent_id, all: true }))[0]?.revoked_at)
    }).pipe(Effect.provide(stores))
  )

  it.effect("leave open what the manifest of the image's tool declares free, and fix the rest", () =>
    Effect.gen(function* () {
      const approvals = yield* Approvals
      const input = { to: "ada@example.org", caption: "a", text: "b" }
      const talk = yield* waiting(["v", input], ["w", { ...input, caption: "c" }], ["x", { ...input, text: "c" }])
      const { agent_id } = talk.caller
      yield* withTools(talk, "1")
      const { home } = yield* ConfigStore
      const folder = join(home, "images", agent_id, "0000000", "choir", "tools", "agent")
      mkdirSync(folder, { recursive: true })
      const text = { type: "string" }
      const properties = { to: text, caption: { ...text, "x-grant": "any" }, text }
      const llm = { name: "mail.send", description: "Send it", input_schema: { type: "object", properties } }
      writeFileSync(join(folder, "mail.json"), JSON.stringify({ llm, runtime: { exec_path: "mail" } }))
      yield* grantBy((yield* ask(talk, "v", input)).approval_id)
      assert.strictEqual(
        (yield* approvals.grants({ agent_id, all: false }))[0]?.words,
        'calls of mail.send with text: "b", to: "ada@example.org", caption: any text, and no other arguments'
      )
      assert.strictEqual((yield* ask(talk, "w", { ...input, caption: "c" })).status, "approved")
      assert.strictEqual((yield* ask(talk, "x", { ...input, text: "c" })).status, "pending")
    }).pipe(Effect.provide(stores))
  )

  it.effect("of one agent cover no call of another one", () =>
    Effect.gen(function* () {
      const one = yield* waiting(["l"])
      yield* grantBy((yield* ask(one, "l")).approval_id)
      const other = yield* waiting(["m"])
      assert.strictEqual((yield* ask(other, "m")).status, "pending")
    }).pipe(Effect.provide(stores))
  )
})
