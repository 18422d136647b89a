import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer, type Vitest } from "@effect/vitest"
import { Effect, Fiber, Option, Schedule } from "effect"
import type { ChatEvent } from "#schema/ChatApi.ts"
import { describeEveryInstallation, type Suite } from "../support/everyInstallation.ts"
import { SharedChoir } from "../support/SharedChoir.ts"
import { LAYER_MS_MAX } from "../support/size.ts"
import { answer, callTools, failing, raw, say } from "../support/testing/Provider.ts"
import { conversationProblems, historyProblems } from "../support/verifyHistory.ts"

const texts = (shown: ReadonlyArray<ChatEvent>, kind: string) =>
  shown.flatMap((event) => (event.type === "message" && event.kind === kind ? [event.text] : []))

/** Making an installation, with the first build of a base image. */

const start = Effect.flatMap(SharedChoir, ({ begin }) => begin)

const conversation = (it: Vitest.MethodsNonLive<SharedChoir>) => {
  it.effect("answers, works in concurrent jobs, reports them, and leaves a chain that anyone can verify", () =>
    Effect.gen(function* () {
      const { api, ask, events, session_id, workspace } = yield* start
      const hello = yield* ask("hello")
      assert.strictEqual(texts(hello.shown, "reply").length, 1)
      const work = yield* ask(
        "job alpha: write a.txt: one two three, then report half way, then run wc -w a.txt\njob beta: write b.txt: four, then read b.txt"
      )
      assert.strictEqual(texts(work.shown, "reply").length, 1)
      assert.strictEqual(texts(work.shown, "report").length, 2)
      assert.strictEqual(readFileSync(join(workspace, "a.txt"), "utf8"), "one two three\n")
      assert.strictEqual(readFileSync(join(workspace, "b.txt"), "utf8"), "four\n")
      const history = yield* events(session_id)
      const requested = new Set(
        history.flatMap(({ event }) =>
          event.event_type === "ToolCallRequested" && event.payload.tool === "choir.core.report"
            ? event.payload.call_id
            : []
        )
      )
      const reported = history.filter(
        ({ event }) =>
          event.event_type === "ToolResultCommitted" &&
          requested.has(event.payload.call_id) &&
          event.payload.status === "success"
      )
      assert.strictEqual(reported.length, 1)
      assert.deepStrictEqual(historyProblems(session_id, history), [])
      assert.deepStrictEqual(conversationProblems([hello.inbox_id, work.inbox_id], history), [])
      const verification = yield* api.sessions.verify({ params: { id: session_id } })
      assert.deepStrictEqual([verification.ok, verification.events], [true, history.length])
    })
  )
}

const troubles = (it: Vitest.MethodsNonLive<SharedChoir>) => {
  it.effect("shows at the console that edge is at work before the model has begun to answer", () =>
    Effect.gen(function* () {
      const { provider, send, settled, watch } = yield* start
      const working = yield* Effect.forkChild(
        watch((event) => event.type === "activity" && event.edge !== "EDGE_IDLE"),
        { startImmediately: true }
      )
      yield* provider.script(Effect.andThen(Fiber.await(working), answer("hello")))
      const { inbox_id } = yield* send("sign-1", "hello")
      assert.deepStrictEqual(texts(yield* settled(inbox_id), "reply"), ["hello"])
    })
  )

  it.effect("shows at the console what the model writes before it has ended", () =>
    Effect.gen(function* () {
      const { provider, send, settled, watch } = yield* start
      const writing = yield* Effect.forkChild(
        watch((event) => event.type === "draft"),
        { startImmediately: true }
      )
      const text = `first ${"word ".repeat(100)}last`
      yield* provider.script(say({ text }, { waits: { after: 80, for: Fiber.await(writing) } }))
      const { inbox_id } = yield* send("draft-1", "hello")
      const drafts = (yield* Fiber.join(writing)).flatMap((event) => (event.type === "draft" ? [event.text] : []))
      assert.match(drafts[0] ?? "", /^first(?: word)*$/u)
      assert.deepStrictEqual(texts(yield* settled(inbox_id), "reply"), [text])
    })
  )

  it.effect("goes on in the same session when the agent is killed in the middle of a turn", () =>
    Effect.gen(function* () {
      const { api, choird, events, params, send, session_id, settled, workspace } = yield* start
      const { inbox_id } = yield* send("kill-1", "run sleep 60 && echo slow > slow.txt\nwrite after.txt: after")
      yield* Effect.retry(
        Effect.flatMap(events(session_id), (history) =>
          history.some(({ event }) => event.event_type === "ToolCallCommitted") ? Effect.void : Effect.fail("not yet")
        ),
        Schedule.spaced("20 millis")
      )
      const pid = Option.getOrThrow(yield* choird.agent)
      process.kill(pid, "SIGKILL")
      yield* settled(inbox_id)
      const detail = yield* api.agents.status({ params })
      assert.deepStrictEqual([detail.status, detail.session_id], ["running", session_id])
      const history = yield* events(session_id)
      assert.deepStrictEqual(conversationProblems([inbox_id], history), [])
      const unknown = history.filter(
        ({ event }) => event.event_type === "ToolResultCommitted" && event.payload.status === "unknown_after_crash"
      )
      assert.strictEqual(unknown.length, 1)
      assert.isTrue(existsSync(join(workspace, "after.txt")))
    })
  )

  for (const target of ["agent", "choird"] as const)
    it.effect(`tells the user of an external call that a killed ${target} cut off, and never runs it again (R6)`, () =>
      Effect.gen(function* () {
        const choir = yield* start
        const ledger = join(choir.workspace, "ledger")
        const { inbox_id } = yield* choir.send(`doubt-${target}`, 'call ledger.append {"note":"slow"}')
        yield* Effect.retry(
          // The file is there before its line is: a kill between the two leaves it empty.
          Effect.suspend(() =>
            existsSync(ledger) && readFileSync(ledger, "utf8").endsWith("\n") ? Effect.void : Effect.fail("not yet")
          ),
          Schedule.spaced("20 millis")
        )
        if (target === "agent") process.kill(Option.getOrThrow(yield* choir.choird.agent), "SIGKILL")
        else {
          yield* choir.choird.signal("SIGKILL")
          yield* choir.choird.exited
          yield* choir.start
        }
        const shown = yield* choir.settled(inbox_id)
        const notices = texts(shown, "notice").filter((text) => text.includes("ledger-append"))
        assert.strictEqual(notices.length, 1)
        assert.match(notices[0] ?? "", /I do not know whether it took effect/u)
        assert.strictEqual(texts(shown, "reply").length, 1)
        const history = yield* choir.events(choir.session_id)
        const results = history.flatMap(({ event }) =>
          event.event_type === "ToolResultCommitted" ? [event.payload] : []
        )
        assert.deepStrictEqual(
          results.map(({ status }) => status),
          ["unknown_after_crash"]
        )
        assert.deepStrictEqual(readFileSync(ledger, "utf8"), `${results[0]?.call_id}\n`)
        assert.deepStrictEqual(conversationProblems([inbox_id], history), [])
      })
    )

  it.effect("tells a broken provider, malformed output and an unknown tool where a person looks, and goes on", () =>
    Effect.gen(function* () {
      const { ask, provider } = yield* start
      // What may pass is asked again.
      yield* provider.script(failing(500, "the kitchen is on fire"), answer("the fire is out"))
      assert.strictEqual(texts((yield* ask("one")).shown, "reply")[0], "the fire is out")
      yield* provider.script(raw("this is not JSON"))
      assert.include(texts((yield* ask("two")).shown, "error")[0], "the answer is not JSON")
      yield* provider.script(callTools([{ name: "choir-fs-levitate", input: {} }]), answer("there is no such tool"))
      assert.strictEqual(texts((yield* ask("three")).shown, "reply")[0], "there is no such tool")
      assert.strictEqual(texts((yield* ask("hello")).shown, "reply").length, 1)
    })
  )

  it.effect("stops a command that never ends at its timeout, and nothing of it survives", () =>
    Effect.gen(function* () {
      const { ask, provider } = yield* start
      const command = "setsid sleep 4242 & sleep 4242"
      yield* provider.script(
        callTools([{ name: "choir-exec", input: { command, timeout_ms: 300 } }]),
        answer("it took too long")
      )
      assert.strictEqual(texts((yield* ask("wait")).shown, "reply")[0], "it took too long")
      const { stdout } = yield* Effect.promise(() => import("node:child_process")).pipe(
        Effect.map(({ spawnSync }) => spawnSync("pgrep", ["-f", "sleep 4242"]))
      )
      assert.strictEqual(stdout.toString(), "")
    })
  )

  it.effect("stops gracefully, keeps the session, and resumes it; its socket is gone in between", () =>
    Effect.gen(function* () {
      const { api, ask, home, params, session_id } = yield* start
      yield* ask("hello")
      const socket = join(home, "socks/agents", session_id, "choird.sock")
      assert.isTrue(existsSync(socket))
      const stopped = yield* api.agents.stop({ params })
      assert.deepStrictEqual([stopped.status, stopped.session_id], ["stopped", session_id])
      assert.isFalse(existsSync(socket))
      const show = api.session.show({ params: { id: session_id } })
      const shown = yield* show
      assert.deepInclude(shown, { status: "stopped", epoch: 1, last_rev: 4 })
      assert.match(shown.summary?.summary ?? "", /^The user said: hello\nI said: /u)
      const again = yield* api.agents.start({ params, payload: {} })
      assert.strictEqual(again.session_id, session_id)
      assert.strictEqual(texts((yield* ask("hello")).shown, "reply").length, 1)
      yield* api.agents.stop({ params })
      assert.match((yield* show).summary?.summary ?? "", /(The user said: hello[^]*){2}/u)
      const fresh = yield* api.agents.start({ params, payload: { fresh: true } })
      assert.notStrictEqual(fresh.session_id, session_id)
    })
  )

  it.effect("resumes its agents when choird is killed and started again, after what they did meanwhile (D15)", () =>
    Effect.gen(function* () {
      const installation = yield* start
      const { inbox_id } = yield* installation.send("x-1", "run sleep 0.5; write late.txt: late")
      yield* installation.choird.signal("SIGKILL")
      yield* installation.choird.exited
      yield* installation.start
      yield* installation.settled(inbox_id)
      const history = yield* installation.events(installation.session_id)
      assert.deepStrictEqual(conversationProblems([inbox_id], history), [])
      assert.isTrue(existsSync(join(installation.workspace, "late.txt")))
      // A container outlives choird, and is heard before it is removed: on its socket, or on the port that it was told.
      const flushed = /its earlier container flushed up to revision \d+/u
      assert.strictEqual(flushed.test(yield* installation.logged), installation.outlives)
    })
  )
}

const on =
  (...suites: ReadonlyArray<typeof conversation>): Suite =>
  (place) =>
    layer(SharedChoir.layer(place), { excludeTestServices: true, timeout: LAYER_MS_MAX })((it) => {
      for (const suite of suites) suite(it)
    })

describeEveryInstallation("a conversation", { part: on(conversation), whole: on(conversation, troubles) })
