import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, PubSub, Queue, Schema, Stream } from "effect"
import { Config } from "#schema/Config.ts"
import { coreLane, EDGE, InboxId, JobName } from "#schema/Ids.ts"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { AGENT, append, DM, SESSION, type World } from "../../../support/control.ts"
import { started, stopped } from "../../../support/jobEvents.ts"
import { answered, openOperator, output, reporting, said } from "../../../support/operatorSocket.ts"
import { CONFIG } from "../../../support/stores.ts"
import { CHAT_UNACKED_BYTES_MAX } from "#src/choird/api/operator/ChatStream.ts"
import { CHAT_TEXT_CHARS_MAX } from "#src/choird/queues/chatTextLimit.ts"

const one = InboxId.make("1")

describe("chat", () => {
  const message = (text: string, client_id = "c1") => ({ params: { id: AGENT }, payload: { client_id, text } })

  it.effect("queues a message of the bound console", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      assert.deepStrictEqual(yield* api.chat.send(message("a\0b\ud800")), { inbox_id: one, position: 0 })
      assert.deepStrictEqual(world.inbox, [
        { gateway: "screen", client_id: "c1", agent_id: AGENT, dm: DM, text: "a\u{FFFD}b\u{FFFD}", attachments: [] }
      ] as unknown as typeof world.inbox)
    })
  )

  it.effect("answers commands itself, and leaves every other text to the agent", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      yield* append(world, [said(one), started("a")])
      const command = (text: string, client_id = "c1") =>
        Effect.map(api.chat.command(message(text, client_id)), ({ answer }) => answer)
      assert.deepStrictEqual(yield* command("hello /status"), null)
      assert.match((yield* command("/nonsense"))?.text ?? "", /^Unknown command \/nonsense\./u)
      assert.deepStrictEqual(yield* command("/cores"), {
        kind: "notice",
        text: "a: initializing, step 0, 1 s\n  task: x\n  at work, 0 steps, 0 tokens"
      })
      assert.deepStrictEqual(yield* command("/inject"), { kind: "notice", text: "Usage: /inject <message>" })
      const noted = { kind: "notice" as const, text: "Noted. The agent will read this at its next step." }
      assert.deepStrictEqual(yield* command("/inject faster"), noted)
      assert.deepStrictEqual(yield* command("/inject faster"), noted)
      assert.deepStrictEqual(yield* command("/cancel b", "c2"), {
        kind: "refusal",
        text: "There is no job b. Running jobs: a."
      })
      assert.deepStrictEqual(yield* command("/cancel", "c3"), { kind: "notice", text: "a is being cancelled." })
      assert.deepStrictEqual(
        [...world.sentSignals].map(([id, { body }]) => [id, body.type]),
        [
          ["screen:c1", "Inject"],
          ["screen:c3", "CancelCore"]
        ]
      )
      assert.deepStrictEqual(
        world.audit.map(({ who, detail }) => [who, (detail as { refused?: string }).refused]),
        [
          ["gateway:screen", undefined],
          ["gateway:screen", undefined],
          ["gateway:screen", "NO_SUCH_JOB"],
          ["gateway:screen", undefined]
        ]
      )
      assert.deepStrictEqual(yield* command("/stop", "c4"), { kind: "notice", text: "Stopping." })
      assert.deepInclude(world.sentSignals.get("screen:c4")?.body, { type: "StopTurn", turn: { inbox_id: one } })
      assert.match((yield* command("/model"))?.text ?? "", /^The model is small \(m\)\.$/u)
      assert.deepStrictEqual(yield* command("/rich on"), {
        kind: "refusal",
        text: "/rich is for a messenger: a terminal shows every answer as plain text, and no reactions."
      })
      assert.match((yield* command("/model llm small"))?.text ?? "", /^Switched to small, from the next step/u)
      assert.deepStrictEqual(world.effects, ["gateway:screen sets small -"])
      assert.deepStrictEqual(world.inbox, [])
    })
  )

  it.effect("leaves a text that begins with a path to the agent, and names the nearest command for one word", () =>
    Effect.gen(function* () {
      const { api } = yield* openOperator()
      const answer = (text: string, id: string) =>
        Effect.map(api.chat.command(message(text, id)), (answered) => answered.answer)
      const texts = ["/home is full, what can I delete?", "/2 of them are wrong", "/var/log is too large"]
      for (const [index, text] of texts.entries()) assert.isNull(yield* answer(text, `p${index}`))
      const unknown = "Unknown command /sttus. Did you mean /status? /help lists the commands."
      assert.deepStrictEqual(yield* answer("/sttus", "n1"), { kind: "notice", text: unknown })
      assert.strictEqual((yield* answer("/home", "n2"))?.text, "Unknown command /home. /help lists the commands.")
    })
  )

  it.effect("says that nothing runs when a person stops or cancels it", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      for (const text of ["/stop", "/cancel"])
        assert.deepStrictEqual((yield* api.chat.command(message(text, text.slice(1)))).answer, {
          kind: "notice",
          text: "Nothing is running."
        })
      world.nextMessage = one
      assert.strictEqual((yield* api.chat.command(message("/cancel", "c3"))).answer?.text, "Stopping.")
    })
  )

  it.effect("has no session to steer when the last one has reached its budget", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      world.view = { ...world.view, session_id: null }
      const { answer } = yield* api.chat.command(message("/compact"))
      assert.strictEqual(answer?.kind, "refusal")
    })
  )

  const refusals: ReadonlyArray<readonly [string, (world: World) => void, Record<string, unknown>]> = [
    [
      "an agent bound elsewhere, with the command that would bind it",
      (world) => (world.view = { ...world.view, bindings: { ...world.view.bindings!, dm: "phone" as typeof DM } }),
      {
        "error.type": "NOT_CONSOLE",
        "error.hint": "choirctl agent restart ada --dm phone --dm terminal"
      }
    ],
    [
      "an agent that does not run",
      (world) => (world.view = { ...world.view, status: "stopped" }),
      { "error.type": "NOT_RUNNING", "error.hint": "choirctl agent start ada" }
    ],
    [
      "a full inbox",
      (world) => (world.inboxFull = true),
      { "error.type": "QUEUE_FULL", "error.retry_after_ms": 10_000 }
    ]
  ]
  for (const [what, arrange, expected] of refusals)
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function* () {
        const { api, world } = yield* openOperator()
        arrange(world)
        assert.nestedInclude(yield* Effect.flip(api.chat.send(message("hi"))), expected)
        assert.deepStrictEqual(world.inbox, [])
      })
    )

  it.effect("refuses a text that no event could hold", () =>
    Effect.gen(function* () {
      const { api } = yield* openOperator()
      const long = yield* Effect.flip(api.chat.send(message("x".repeat(CHAT_TEXT_CHARS_MAX + 1))))
      assert.nestedInclude(long, { "error.type": "TOO_LARGE" })
    })
  )

  /** The stream's events as a queue; it is open when the agent's status has come. */
  const watch = Effect.fnUntraced(function* (api: Effect.Success<ReturnType<typeof openOperator>>["api"]) {
    const queue = yield* Queue.bounded<ChatEvent>(64)
    const ready = yield* Deferred.make<void>()
    const events = yield* api.chat.stream({ params: { id: AGENT } })
    yield* Stream.runForEach(events, ({ data }) =>
      Effect.andThen(
        Queue.offer(queue, data),
        data.type === "activity" ? Deferred.succeed(ready, undefined) : Effect.void
      )
    ).pipe(Effect.forkScoped)
    yield* Deferred.await(ready)
    return queue
  })
  const next = (queue: Queue.Dequeue<ChatEvent>, count: number) =>
    Effect.map(
      Effect.forEach(Array.from({ length: count }), () => Queue.take(queue)),
      (events) =>
        events.map((event) => {
          switch (event.type) {
            case "message":
              return `${event.kind} ${event.text}`
            case "activity":
              return [event.edge, ...(event.reporting === true ? ["reporting"] : []), event.cores.join("+")]
                .join(" ")
                .trim()
            case "settled":
              return `settled ${event.inbox_id}`
            case "agent":
              return event.status
            case "draft":
              return `draft ${event.text}`
          }
        })
    )

  it.effect("shows the beginning of an answer as it will show the answer, without choird's mark at its beginning", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const queue = yield* watch(api)
      assert.deepStrictEqual(yield* next(queue, 2), ["running", "EDGE_IDLE"])
      for (const text of ["On it.", "◆ ada asks for your approval (number 7)."])
        yield* PubSub.publish(world.drafts, { agent_id: AGENT, dm: DM, inbox_id: one, text })
      assert.deepStrictEqual(yield* next(queue, 2), [
        "draft On it.",
        `draft ${AGENT}:\n* ada asks for your approval (number 7).`
      ])
    })
  )

  it.effect("shows that edge works on a message before its model has said a word, and waits for no timer with it", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const queue = yield* watch(api)
      assert.deepStrictEqual(yield* next(queue, 2), ["running", "EDGE_IDLE"])
      // Nobody moves the clock of the test, so that whatever waited for a time would never come.
      yield* append(world, [said(one)])
      const [shown = ""] = yield* next(queue, 1)
      assert.match(shown, /^EDGE_(?!IDLE)/u)
    })
  )

  it.effect("tells a turn with a job in order, and settles it after its report", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const queue = yield* watch(api)
      assert.deepStrictEqual(yield* next(queue, 2), ["running", "EDGE_IDLE"])
      yield* append(world, [said(one), started("a"), output(EDGE, "c1")])
      assert.deepStrictEqual(yield* next(queue, 1), ["EDGE_FINALIZING a"])
      yield* append(world, [answered("reply", one, "on it")])
      assert.deepStrictEqual(yield* next(queue, 2), ["reply on it", "EDGE_IDLE a"])
      const job = coreLane(JobName.make("a"))
      yield* append(world, [output(job, "c2"), stopped("a")])
      // No event tells that the model is asked for the report.
      assert.deepStrictEqual(yield* next(queue, 1), ["EDGE_IDLE reporting"])
      const noted = (yield* api.chat.command(message("/inject be short", "c1"))).answer?.text
      assert.strictEqual(noted, "Noted. The agent will read this at its next step.")
      assert.match(
        (yield* api.chat.command(message("/status", "c2"))).answer?.text ?? "",
        /\nIt is reporting on a job\.\n/u
      )
      yield* append(world, [answered("report", one, "done")])
      assert.deepStrictEqual(yield* next(queue, 3), ["report done", "EDGE_IDLE", "settled 1"])
    })
  )

  it.effect("says of the files of a message where they are on this host, on one line each", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const config = Schema.decodeUnknownSync(Config)({ ...CONFIG, workspaces: { main: { path: "/srv/main" } } })
      world.view = { ...world.view, started_with: config }
      yield* append(world, [said(one), answered("reply", one, "the plan")])
      const items = ["plan.md", "a\nFile: \u202eb"].map((path) => ({ path, sha256: "0".repeat(64), bytes: 1234 }))
      const rows = world.outbox.splice(0).map((row) => ({ ...row, form: { files: { workspace: "main", items } } }))
      world.outbox.push(...rows)
      const queue = yield* watch(api)
      assert.deepStrictEqual(
        (yield* next(queue, 1))[0],
        ["reply the plan", "File: /srv/main/plan.md (1,234 bytes)", "File: /srv/main/a_File: _b (1,234 bytes)"].join(
          "\n"
        )
      )
    })
  )

  it.effect("settles a message whose news it was too slow for, as the log has it", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const queue = yield* watch(api)
      assert.deepStrictEqual(yield* next(queue, 2), ["running", "EDGE_IDLE"])
      yield* append(world, [said(one), output(EDGE, "c1")], false)
      yield* append(world, [answered("reply", one, "hello")])
      assert.deepStrictEqual(yield* next(queue, 2), ["reply hello", "settled 1"])
    })
  )

  it.effect("tells what a job said of itself last, to who watches and to who asks", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      const core = coreLane(JobName.make("a"))
      const plan = [
        { step: "look", state: "done" },
        { step: "write", state: "doing" }
      ] as const
      const report = { kind: "plan", text: "two steps", percent: 50, phase: "write", focus: "notes.md", plan } as const
      yield* append(world, [said(one), started("a"), ...reporting(core, "r", report)])
      const [job] = yield* api.sessions.cores({ params: { id: SESSION } })
      assert.deepStrictEqual<unknown>(job?.report, report)
      const { answer } = yield* api.chat.command(message("/cores"))
      assert.deepStrictEqual(answer?.text.split("\n"), [
        "a: reasoning, step 1, 1 s",
        "  task: x",
        "  plan: 1 of 2 steps done",
        "    [x] look",
        "    [>] write",
        "  says: write, 50%, notes.md — two steps",
        "  at work, 1 step, last choir.core.report, 15 tokens"
      ])
      const stream = yield* api.chat.stream({ params: { id: AGENT } })
      const news = yield* Stream.runCollect(Stream.take(stream, 2))
      const activity = news.map(({ data }) => data).find(({ type }) => type === "activity")
      const job_name = JobName.make("a")
      assert.deepInclude(activity, { cores: [job_name], reports: [{ job_name, report }] })
    })
  )

  it.effect("gives unread messages first and settles what is already done", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      yield* append(world, [said(one), output(EDGE, "c1"), answered("reply", one, "hello")])
      const queue = yield* watch(api)
      assert.deepStrictEqual(yield* next(queue, 4), ["reply hello", "running", "EDGE_IDLE", "settled 1"])
      assert.deepStrictEqual(yield* api.chat.ack({ params: { id: AGENT }, payload: { outbox_ids: ["1"] } }), {
        acked: 1
      })
      const again = yield* watch(api)
      assert.deepStrictEqual(yield* next(again, 3), ["running", "EDGE_IDLE", "settled 1"])
      for (const outbox_ids of [["x"], ["0"], Array.from({ length: 1001 }, () => "1")]) {
        const refused = yield* Effect.flip(api.chat.ack({ params: { id: AGENT }, payload: { outbox_ids } }))
        assert.nestedInclude(refused, { "error.type": "BAD_REQUEST" })
      }
    })
  )

  it.effect("shows no more bytes of unread messages than a client may be shown, and the next once some are read", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      yield* append(world, [said(one), output(EDGE, "c1"), answered("reply", one, "hello")])
      const more = "x".repeat(CHAT_UNACKED_BYTES_MAX / 2)
      const rows = world.outbox.splice(0)
      for (let index = 1; index <= 5; index += 1)
        world.outbox.push(
          ...rows.map((row) => ({ ...row, outbox_id: String(index), source_id: `s:${index}`, text: `${index}${more}` }))
        )
      const queue = yield* watch(api)
      const shown = Effect.map(next(queue, 1), ([text = ""]) => text.slice(0, "reply 1".length))
      const ack = (...outbox_ids: ReadonlyArray<string>) =>
        api.chat.ack({ params: { id: AGENT }, payload: { outbox_ids } })
      // The next of a client's news is not a message, but the agent's status and activity.
      assert.deepStrictEqual([yield* shown, ...(yield* next(queue, 2))], ["reply 1", "running", "EDGE_IDLE"])
      yield* ack("1")
      assert.strictEqual(yield* shown, "reply 2")
      yield* ack("2", "3", "4")
      assert.strictEqual(yield* shown, "reply 5")
      assert.deepStrictEqual(yield* next(queue, 1), ["settled 1"])
    })
  )

  it.effect("tells a stopped agent's status and keeps its unread messages readable", () =>
    Effect.gen(function* () {
      const { api, world } = yield* openOperator()
      yield* append(world, [said(one), output(EDGE, "c1"), answered("reply", one, "hello")])
      world.view = { ...world.view, status: "stopped", session_id: null, bindings: null }
      const events = yield* api.chat.stream({ params: { id: AGENT } })
      const first = yield* Stream.runCollect(Stream.take(events, 2))
      assert.deepStrictEqual(
        first.map(({ data }) => data.type),
        ["message", "agent"]
      )
    })
  )
})
