/** Scheduled skills over the real stores and a real image folder, with choird killed between any two steps. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Option } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import type { EventDraft } from "#schema/Event.ts"
import { CallId, coreLane, EDGE, JobName, type SessionId, SignalId } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import type { AgentView } from "#src/choird/agents/AgentViews.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { Images } from "#src/choird/images/Images.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { SessionStore } from "#src/choird/sessions/SessionStore.ts"
import { Steering } from "#src/choird/sessions/Steering.ts"
import { Schedules } from "#src/choird/schedules/Schedules.ts"
import { started } from "../../support/jobEvents.ts"
import { agentView } from "../../support/agentView.ts"
import { describeStores, temporaryFolder } from "../../support/engines.ts"
import { localMinute } from "#src/shared/text/localTime.ts"
import { BINDINGS, DESK, newTalk, newTalkAt, PHONE, stores, Talk } from "../../support/stores.ts"

const VERSION = "abc1234"
const DAILY = "daily at 07:30 in UTC"
const HOUR_MS = 3_600_000
const at = (text: string) => TestClock.setTime(Date.parse(text))

/** A first look on one day, and then the time on the next at which the skill is due. */
const untilDue = <E, R>(look: Effect.Effect<unknown, E, R>) =>
  Effect.andThen(at("2026-11-02T09:00Z"), Effect.andThen(look, at("2026-11-03T07:30Z")))

const skillFile = (schedules: ReadonlyArray<string>) =>
  JSON.stringify({
    name: "brief",
    description: "Write a brief.",
    initial_state: "look",
    max_steps: 3,
    states: {
      look: { objective: "Look.", allowed_tools: ["choir.fs.read"], transitions: [{ on: "complete", to: "done" }] },
      done: { terminal: true }
    },
    registry: {
      version: "1.0.0",
      tier: "pm",
      triggers: schedules.map((match) => ({ kind: "schedule", match, mode: "start" }))
    }
  })

/** An agent with a scheduled skill in its image, that runs or not. */
const makeWorld = Effect.fnUntraced(function* (talk: Talk, schedules: ReadonlyArray<string> = [DAILY]) {
  const home = yield* temporaryFolder
  const { agent_id } = talk.caller
  const view = { session_id: talk.caller.session_id, image_version: VERSION, status: "running" as const }
  const agent: { view: Partial<AgentView>; beside: ReadonlyArray<AgentView> } = { view, beside: [] }
  const pathOf = (version: string) => join(home, version)
  const build = (version: string, written: ReadonlyArray<string>) => {
    const file = join(pathOf(version), "choir/skills/brief.json")
    mkdirSync(dirname(file), { recursive: true })
    if (written.length === 0) rmSync(file, { force: true })
    else writeFileSync(file, skillFile(written))
  }
  build(VERSION, schedules)
  const layer = Layer.fresh(Schedules.layer).pipe(
    Layer.provide(Layer.mock(Images, { pathOf: (_: unknown, version: string) => Effect.succeed(pathOf(version)) })),
    Layer.provide(
      Layer.mock(Lifecycle, { list: Effect.sync(() => [...agent.beside, agentView(agent_id, agent.view)]) })
    ),
    Layer.provide(NodeServices.layer)
  )
  /** A look of a choird that has just been started. */
  const look = Effect.scoped(Effect.flatMap(Layer.build(layer), (built) => Context.get(built, Schedules).look))
  const next = Effect.scoped(
    Effect.flatMap(Layer.build(layer), (built) => Context.get(built, Schedules).next(agent_id))
  )
  return { agent, build, look, next }
})

interface Row {
  readonly state: string
  readonly slot: string
  readonly missed: number
}

const slots = ({ caller: { agent_id } }: Talk) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<Row>`SELECT state, to_char(slot AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') AS slot, missed
      FROM choir_control.schedule_slots WHERE agent_id = ${agent_id} AND state <> 'passed' ORDER BY slot`
  )

const signals = (session_id: SessionId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ readonly signal_id: string; readonly payload: unknown }>`SELECT signal_id::text, payload
      FROM choir_control.signals WHERE session_id = ${session_id} AND kind = 'StartSkill' ORDER BY signal_id`
  )

/** Orders that are sent to the agent of a session until it takes them. */
const waitingIn = (session_id: SessionId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql`SELECT 1 FROM choir_control.signals
        WHERE session_id = ${session_id} AND kind = 'StartSkill' AND acked_rev IS NULL`,
      ({ length }) => length
    )
  )

const told = ({ caller: { agent_id } }: Talk) =>
  Effect.map(
    Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ readonly text: string }>`SELECT text FROM choir_control.outbox WHERE agent_id = ${agent_id}`
    ),
    (rows) => rows.map(({ text }) => text)
  )

/** The agent's answers to an order: the job that it starts, or why not. */
const startedBy = (signal_id: SignalId): ReadonlyArray<EventDraft> => {
  const job_name = JobName.make("run-brief")
  const lane = coreLane(job_name)
  return [
    started(job_name, { job_id: CallId.make(`job-${signal_id}`) }),
    {
      event_type: "SkillTransitionCommitted",
      lane,
      payload: { skill: "brief", from: "", to: "look", on: "start", step: 0, trigger: `schedule: ${DAILY}`, signal_id }
    }
  ]
}

const refusedBy = (signal_id: SignalId): EventDraft => ({
  event_type: "InjectedInstruction",
  lane: EDGE,
  payload: { signal_id, target: EDGE, source: "user", content: "", refused: "a job run-brief runs already" }
})

/** The agent takes its newest order. */
const taken = Effect.fnUntraced(function* (talk: Talk, events: (id: SignalId) => ReadonlyArray<EventDraft>) {
  const waiting = yield* signals(talk.caller.session_id)
  const before = talk.rev
  talk.commit(...events(SignalId.make(waiting.at(-1)?.signal_id ?? "0")))
  yield* Effect.flatMap(EventStore, (events) => events.append(talk.caller, talk.heartbeat(before)))
})

const provided = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.scoped, Effect.provide(Layer.merge(stores, TestClock.layer())))

describeStores("Schedules", (it) => {
  it.effect("order the skill of a running agent at its time, once, and keep how it ended", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { look } = yield* makeWorld(talk)
      yield* at("2026-11-02T09:00Z")
      yield* look
      yield* at("2026-11-03T07:29:59Z")
      yield* look
      assert.lengthOf(yield* signals(talk.caller.session_id), 0)
      yield* at("2026-11-03T07:30Z")
      for (let looks = 0; looks < 3; looks += 1) yield* look
      const [order, ...more] = yield* signals(talk.caller.session_id)
      assert.lengthOf(more, 0)
      assert.deepStrictEqual(order?.payload, { skill: "brief", job_name: "run-brief", trigger: `schedule: ${DAILY}` })
      assert.deepStrictEqual(yield* slots(talk), [{ state: "ordered", slot: "2026-11-03 07:30", missed: 0 }])
      yield* taken(talk, startedBy)
      yield* look
      assert.deepStrictEqual(yield* slots(talk), [{ state: "started", slot: "2026-11-03 07:30", missed: 0 }])
      assert.deepStrictEqual(yield* told(talk), [])
      const sql = yield* SqlClient.SqlClient
      const runs = yield* sql`SELECT trigger FROM choir_control.skill_runs WHERE session_id = ${talk.caller.session_id}`
      assert.deepStrictEqual(runs, [{ trigger: `schedule: ${DAILY}` }])
    }).pipe(provided)
  )

  it.effect("begin a skill once, wherever choird is killed", () =>
    Effect.gen(function* () {
      const steering = yield* Steering
      const kills: ReadonlyArray<readonly [string, Partial<Steering["Service"]>]> = [
        ["before the order", { order: () => Effect.die("killed") }],
        ["after the order", { order: (...asked) => Effect.andThen(steering.order(...asked), Effect.die("killed")) }],
        ["before the answer", { answer: () => Effect.die("killed") }],
        ["after the answer", { answer: (...asked) => Effect.andThen(steering.answer(...asked), Effect.die("killed")) }]
      ]
      for (const [when, killed] of kills) {
        const talk = yield* newTalk
        const { look } = yield* makeWorld(talk)
        yield* untilDue(look)
        const dying = Effect.exit(Effect.provideService(look, Steering, { ...steering, ...killed }))
        if (when.includes("answer")) {
          yield* look
          yield* taken(talk, startedBy)
        }
        assert.isTrue(Exit.isFailure(yield* dying), when)
        yield* look
        if (when.includes("order")) yield* taken(talk, startedBy)
        yield* look
        assert.lengthOf(yield* signals(talk.caller.session_id), 1, when)
        assert.deepStrictEqual(yield* slots(talk), [{ state: "started", slot: "2026-11-03 07:30", missed: 0 }], when)
      }
    }).pipe(provided)
  )

  it.effect(
    "order it in the next session where the first one ended before its agent took the order, and only there",
    () =>
      Effect.gen(function* () {
        const sessions = yield* SessionStore
        const steering = yield* Steering
        for (const when of ["claimed", "ordered", "ordered, and killed", "taken"] as const) {
          const talk = yield* newTalk
          const { agent, look } = yield* makeWorld(talk)
          const { agent_id, session_id } = talk.caller
          yield* untilDue(look)
          const order: Steering["Service"]["order"] = (...asked) =>
            Effect.andThen(when === "claimed" ? Effect.void : steering.order(...asked), Effect.die("killed"))
          const isKilled = when === "claimed" || when === "ordered, and killed"
          yield* isKilled ? Effect.exit(Effect.provideService(look, Steering, { ...steering, order })) : look
          if (when === "taken") yield* taken(talk, startedBy)
          yield* sessions.end(session_id, "stopped")
          const fresh = yield* sessions.create(agent_id, BINDINGS, VERSION)
          agent.view = { ...agent.view, session_id: fresh.session_id }
          for (let looks = 0; looks < 4; looks += 1) yield* look
          const waiting = [yield* waitingIn(session_id), yield* waitingIn(fresh.session_id)]
          assert.deepStrictEqual(waiting, when === "taken" ? [0, 0] : [0, 1], when)
          if (when !== "taken") yield* taken(new Talk(fresh.session_id, agent_id), startedBy)
          yield* look
          assert.deepStrictEqual(yield* slots(talk), [{ state: "started", slot: "2026-11-03 07:30", missed: 0 }], when)
          assert.deepStrictEqual(yield* told(talk), [], when)
          yield* sessions.end(fresh.session_id, "stopped")
        }
      }).pipe(provided)
  )

  it.effect("tell of an order that no agent took before it was too late, and end it", () =>
    Effect.gen(function* () {
      const sessions = yield* SessionStore
      const talk = yield* newTalk
      const { agent, look } = yield* makeWorld(talk)
      const { agent_id, session_id } = talk.caller
      yield* untilDue(look)
      yield* look
      yield* sessions.end(session_id, "closed")
      yield* at("2026-11-03T14:00Z")
      const fresh = yield* sessions.create(agent_id, BINDINGS, VERSION)
      agent.view = { ...agent.view, session_id: fresh.session_id }
      for (let looks = 0; looks < 3; looks += 1) yield* look
      assert.deepStrictEqual(yield* slots(talk), [{ state: "skipped", slot: "2026-11-03 07:30", missed: 0 }])
      assert.deepStrictEqual([yield* waitingIn(session_id), yield* waitingIn(fresh.session_id)], [0, 0])
      const [text, ...more] = yield* told(talk)
      assert.lengthOf(more, 0)
      assert.include(text, "was skipped after 6 hours: the session that was to run it ended before the agent began")
    }).pipe(provided)
  )

  it.effect("run the newest missed time once an agent is back, and tell of those that are too old", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { agent, look } = yield* makeWorld(talk)
      yield* at("2026-11-02T09:00Z")
      yield* look
      for (const status of ["stopped", "paused", "starting"] as const) {
        agent.view = { ...agent.view, status }
        yield* at("2026-11-05T08:00Z")
        yield* look
        assert.deepStrictEqual(yield* slots(talk), [], status)
      }
      agent.view = { ...agent.view, status: "running" }
      yield* look
      yield* look
      assert.deepStrictEqual(yield* slots(talk), [{ state: "ordered", slot: "2026-11-05 07:30", missed: 2 }])
      assert.lengthOf(yield* signals(talk.caller.session_id), 1)
      const [text, ...more] = yield* told(talk)
      assert.lengthOf(more, 0)
      assert.match(text ?? "", /is running now\. Skipped: 2 runs came due .* more than 6 hours ago\.$/u)
    }).pipe(provided)
  )

  it.effect("skip a time that is too old, and tell it once", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { look } = yield* makeWorld(talk)
      yield* at("2026-11-02T09:00Z")
      yield* look
      yield* at("2026-11-03T14:00Z")
      yield* look
      yield* look
      assert.deepStrictEqual(yield* slots(talk), [{ state: "skipped", slot: "2026-11-03 07:30", missed: 1 }])
      assert.lengthOf(yield* signals(talk.caller.session_id), 0)
      const [text, ...more] = yield* told(talk)
      assert.lengthOf(more, 0)
      assert.include(text, "was skipped: 1 run came due while the agent or choird was off")
    }).pipe(provided)
  )

  it.effect("tell how to run a skipped one where it is read: with choirctl at a console, by asking on a phone", () =>
    Effect.gen(function* () {
      const places = [
        [DESK, (agent_id: string) => `To run it now: choirctl skill run ${agent_id} brief`],
        [PHONE, () => "Ask me to run it now."]
      ] as const
      for (const [dm, advice] of places) {
        const talk = yield* newTalkAt(dm)
        const { look } = yield* makeWorld(talk)
        yield* at("2026-11-02T09:00Z")
        yield* look
        yield* at("2026-11-03T14:00Z")
        yield* look
        const { agent_id } = talk.caller
        assert.deepStrictEqual(yield* told(talk), [
          `The skill brief of ${agent_id} was due at ${localMinute("2026-11-03T07:30Z")} and was skipped: 1 run came due while the agent or choird was off, more than 6 hours ago. ${advice(agent_id)}`
        ])
      }
    }).pipe(provided)
  )

  it.effect("skip a time that could not be ordered until it was too old", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { look } = yield* makeWorld(talk)
      const sessions = yield* SessionStore
      const steering = yield* Steering
      yield* untilDue(look)
      const order = () => Effect.die("killed")
      yield* Effect.exit(Effect.provideService(look, Steering, { ...steering, order }))
      const { session_id } = talk.caller
      const row = Option.getOrThrow(yield* sessions.get(session_id))
      // The session ends between the look at it and the order.
      const ended: SessionStore["Service"] = { ...sessions, get: () => Effect.succeedSome(row) }
      yield* sessions.end(session_id, "stopped")
      const looks = Effect.provideService(look, SessionStore, ended)
      yield* looks
      assert.deepStrictEqual(yield* slots(talk), [{ state: "claimed", slot: "2026-11-03 07:30", missed: 0 }])
      yield* TestClock.adjust(7 * HOUR_MS)
      yield* looks
      assert.deepStrictEqual(yield* slots(talk), [{ state: "skipped", slot: "2026-11-03 07:30", missed: 0 }])
      assert.include((yield* told(talk))[0], "was skipped after 6 hours: the session is stopped")
    }).pipe(provided)
  )

  it.effect("begin what is due in one agent where the look at another one fails", () =>
    Effect.gen(function* () {
      const [broken, talk] = [yield* newTalk, yield* newTalk]
      const sessions = yield* SessionStore
      const { agent, look } = yield* makeWorld(talk)
      agent.beside = [agentView(broken.caller.agent_id, { ...agent.view, session_id: broken.caller.session_id })]
      yield* untilDue(look)
      const steering = yield* Steering
      const order: Steering["Service"]["order"] = (request, ...rest) =>
        request.session_id === broken.caller.session_id ? Effect.die("broken") : steering.order(request, ...rest)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.provideService(look, Steering, { ...steering, order }))))
      assert.lengthOf(yield* signals(talk.caller.session_id), 1)
      yield* sessions.end(broken.caller.session_id, "stopped")
    }).pipe(provided)
  )

  it.effect("tell why the agent did not begin it, and do not try that time again", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { look } = yield* makeWorld(talk)
      yield* untilDue(look)
      yield* look
      yield* taken(talk, (id) => [refusedBy(id)])
      yield* look
      yield* look
      assert.deepStrictEqual(yield* slots(talk), [{ state: "refused", slot: "2026-11-03 07:30", missed: 0 }])
      assert.lengthOf(yield* signals(talk.caller.session_id), 1)
      assert.deepStrictEqual(yield* told(talk), [
        `The skill brief of ${talk.caller.agent_id} was due at ${localMinute("2026-11-03T07:30Z")} and did not start: a job run-brief runs already`
      ])
    }).pipe(provided)
  )

  it.effect("are known with their next times, the soonest of several", () =>
    Effect.gen(function* () {
      const { next } = yield* makeWorld(yield* newTalk, [DAILY, "daily at 05:00 in UTC"])
      yield* at("2026-11-02T09:00Z")
      assert.deepStrictEqual(yield* next, [{ skill: SkillName.make("brief"), at_ms: Date.parse("2026-11-03T05:00Z") }])
    }).pipe(provided)
  )

  it.effect("count a new, a changed and a returning schedule from the instant at which it came", () =>
    Effect.gen(function* () {
      const talk = yield* newTalk
      const { agent, build, look } = yield* makeWorld(talk)
      yield* at("2026-11-02T09:00Z")
      yield* look
      const images = [[], [DAILY], ["daily at 08:00 in UTC"]]
      for (const [index, schedules] of images.entries()) {
        const image_version = `image${index}`
        build(image_version, schedules)
        agent.view = { ...agent.view, image_version }
        yield* at(`2026-11-03T1${index}:00Z`)
        yield* look
        yield* look
      }
      assert.deepStrictEqual(yield* slots(talk), [])
      yield* at("2026-11-04T07:45Z")
      yield* look
      assert.deepStrictEqual(yield* slots(talk), [])
      yield* at("2026-11-04T08:00Z")
      yield* look
      assert.deepStrictEqual(yield* slots(talk), [{ state: "ordered", slot: "2026-11-04 08:00", missed: 0 }])
    }).pipe(provided)
  )
})
