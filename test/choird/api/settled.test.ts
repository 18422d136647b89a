import { assert, describe, it } from "@effect/vitest"
import { CallId, InboxId, JobName, ResourceName, coreLane } from "#schema/Ids.ts"
import { carriedTo, settledIn, watchedAtFirst } from "#src/choird/api/operator/ChatStream.ts"
import { initialState } from "#src/shared/session/fold.ts"

const one = InboxId.make("1")
const two = InboxId.make("2")
const job = JobName.make("a")
const dm = ResourceName.make("terminal")
const watched = new Set([one, two])

const idle = { ...initialState, last_inbox_id: 2n }
const report = { kind: "stopped", job_id: CallId.make("c"), job_name: job, rev: 3, inbox_id: one } as const
const turn = (inbox_id: InboxId) => ({ kind: "turn" as const, inbox_id, dm, rev: 1 })

describe("settledIn", () => {
  it("settles every watched message once edge is idle and nothing is left", () => {
    assert.deepStrictEqual(settledIn(idle, watched), [one, two])
  })
  it("settles none while edge works", () => {
    const state = { ...idle, edge: { ...idle.edge, state: "EDGE_REASONING" as const, turn: turn(two) } }
    assert.deepStrictEqual(settledIn(state, watched), [])
  })
  it("waits for the jobs that a message's turn started, and for no other message's", () => {
    const core = { ...idle.edge, job_name: job, lane: coreLane(job), inbox_id: one } as never
    assert.deepStrictEqual(settledIn({ ...idle, cores: new Map([[job, core]]) }, watched), [two])
  })
  it("waits for the report on a stopped job", () => {
    assert.deepStrictEqual(settledIn({ ...idle, reports: [report] }, watched), [two])
  })
  it("settles what an ended edge leaves", () => {
    const state = { ...idle, edge: { ...idle.edge, state: "EDGE_TERMINATED" as const } }
    assert.deepStrictEqual(settledIn(state, watched), [one, two])
  })
  it("waits for the session that answers what this one left to it", () => {
    const ended = { ...idle, edge: { ...idle.edge, state: "EDGE_TERMINATED" as const }, carried: two }
    assert.deepStrictEqual(settledIn(ended, watched, carriedTo(ended, undefined)), [one])
    assert.deepStrictEqual(settledIn(initialState, new Set([two]), carriedTo(initialState, two)), [])
    assert.deepStrictEqual(settledIn(idle, new Set([two]), carriedTo(idle, two)), [two])
  })
})

describe("watchedAtFirst", () => {
  it("is the newest message and all that are open", () => {
    assert.deepStrictEqual([...watchedAtFirst(initialState)], [])
    assert.deepStrictEqual([...watchedAtFirst({ ...idle, reports: [report] })], [one, two])
    const reporting = { kind: "report" as const, report, rev: 4 }
    const state = { ...idle, edge: { ...idle.edge, state: "EDGE_REASONING" as const, turn: reporting } }
    assert.deepStrictEqual([...watchedAtFirst(state)], [one, two])
  })
})
