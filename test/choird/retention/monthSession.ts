/** A session of a month: messages, a job that runs a skill, a call of a host tool, a call that a person decides about, and its end. */
import { Effect } from "effect"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, type InboxId, JobName, type LaneId, type ResourceName } from "#schema/Ids.ts"
import type { AgentId } from "#schema/Ids.ts"
import { CallResults } from "#src/choird/hosttools/CallResults.ts"
import { Approvals } from "#src/choird/approvals/Approvals.ts"
import { Inbox } from "#src/choird/queues/Inbox.ts"
import { LogFiles } from "#src/choird/logs/LogFiles.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { asking, decide, ended, proposed, requested, committed } from "../../support/confirmations.ts"
import { started, stopped } from "../../support/jobEvents.ts"
import { answered, output, reporting } from "../../support/operatorSocket.ts"
import { BINDINGS, modelOutput, reply, Talk, userMsg } from "../../support/stores.ts"

const WORDS = "some words that a person wrote ".repeat(60)
const JOB = "tidy-up"
const LANE: LaneId = coreLane(JobName.make(JOB))
const CALL = CallId.make("send-1")

const transition = (from: string, to: string, step: number, ended?: "completed"): EventDraft => ({
  event_type: "SkillTransitionCommitted",
  lane: LANE,
  payload: {
    skill: "tidy",
    from,
    to,
    on: from === "" ? "start" : "complete",
    step,
    ...(from === "" ? { input: { words: WORDS } } : { output: { words: WORDS } }),
    ...(ended === undefined ? {} : { ended })
  }
})

/** A turn that starts a job of a skill with two steps, and the turn that reports it. */
const turnWithJob = (inbox_id: InboxId): ReadonlyArray<EventDraft> => [
  userMsg(inbox_id),
  started(JOB),
  modelOutput("spawned"),
  reply(inbox_id, WORDS),
  transition("", "look", 0),
  ...reporting(LANE, "report-1", { plan: ["look", "write"], phase: "look", percent: 50 }),
  transition("look", "write", 1),
  output(LANE, "job-1"),
  transition("write", "done", 2, "completed"),
  output(LANE, "job-2"),
  stopped(JOB),
  { ...output(EDGE, "report-2"), payload: { ...output(EDGE, "report-2").payload, purpose: "report" } } as EventDraft,
  answered("report", inbox_id, WORDS)
]

interface Order {
  readonly agent_id: AgentId
  /** Tells this session's messages from all others. */
  readonly id: string
  readonly gateway: ResourceName
  readonly dm: ResourceName
  readonly turns: number
  /** Asks a person about a call; `expired` is one that nobody answers. */
  readonly decision: "approved" | "rejected" | "expired"
}

export const monthSession = Effect.fnUntraced(function* ({ agent_id, decision, dm, gateway, id, turns }: Order) {
  const [approvals, events, inbox, logs] = [yield* Approvals, yield* EventStore, yield* Inbox, yield* LogFiles]
  const sessions = yield* SessionStore
  const { session_id } = yield* sessions.create(agent_id, { ...BINDINGS, dm }, "0000000")
  const talk = new Talk(session_id, agent_id)
  const receive = (client_id: string) =>
    Effect.gen(function* () {
      const received = yield* inbox.receive({
        gateway,
        client_id: `${agent_id}:${id}-${client_id}`,
        agent_id,
        dm,
        text: WORDS,
        attachments: []
      })
      return received.type === "full" ? yield* Effect.die("the inbox is full") : received.inbox_id
    })
  /** Sends what was committed since a revision; choird takes all of it. */
  const send = (from: number) =>
    Effect.filterOrElse(
      events.append(talk.caller, talk.heartbeat(from)),
      ({ action }) => action === "OK",
      (reply) => Effect.die(new Error(`the events after ${from} were refused: ${JSON.stringify(reply)}`))
    )
  yield* Effect.logInfo("a session begins", { agent_id, session_id })
  for (let turn = 0; turn < turns; turn += 1) {
    const inbox_id = yield* receive(String(turn))
    const from = talk.rev
    if (turn === 0) talk.commit(...turnWithJob(inbox_id))
    else talk.turn(inbox_id, WORDS)
    yield* send(from)
    yield* Effect.logInfo("a turn is over", { agent_id, session_id })
  }
  const call = { session_id, call_id: CallId.make("host-1"), digest: sha256(id) }
  const results = yield* CallResults
  yield* results.claim(call)
  yield* results.keep(call, { status: "success", output: { words: WORDS } })

  const inbox_id = yield* receive("ask")
  const from = talk.rev
  talk.commit(userMsg(inbox_id), proposed(CALL), requested(CALL))
  yield* send(from)
  const asked = yield* approvals.request(talk.caller, asking(CALL))
  if (decision !== "expired") {
    yield* decide(asked.approval_id, decision)
    const answer = talk.rev
    if (decision === "approved") talk.commit(committed(CALL, asked.approval_id), ended(CALL, "success"))
    else talk.commit(ended(CALL, "rejected"))
    talk.commit(output(EDGE, "last"), reply(inbox_id, WORDS))
    yield* send(answer)
  }
  yield* sessions.end(session_id, "stopped")
  yield* logs.archive(agent_id)
  return { session_id, events: talk.rev }
})
