import { createHash } from "node:crypto"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Conflict } from "#schema/ApiError.ts"
import { ChoirEvent } from "#schema/Event.ts"
import { SignalId } from "#schema/Ids.ts"
import { chainEvent, genesis, hex } from "#src/shared/events/hashChain.ts"
import { SIGNAL_WAIT_MS_MAX } from "#src/shared/limits.ts"
import { choirctl, document, documents } from "../../support/choirctl.ts"
import { verifiedByDocs } from "../../support/documentedVerifier.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { fakeChoird, printedEvent, SESSION, sessionDetail } from "../../support/fakeChoird.ts"

/** An event that holds a model's reasoning, as choird's API gives it. */
const thoughtful = (() => {
  const event = Schema.decodeUnknownSync(ChoirEvent)({
    v: 2,
    rev: 1,
    event_type: "ModelOutput",
    lane: "edge",
    payload: {
      call_id: "s-1-1",
      purpose: "turn",
      model: "small",
      text: "I look.",
      tool_calls: [{ call_id: "s-1-1-0", name: "choir-fs-read", input: { path: "a" } }],
      finish_reason: "tool_calls",
      continuation: { api: "chat", model: "elsewhere.example small", data: '{"reasoning":"raw thought 4711"}' },
      usage: { input_tokens: 1, output_tokens: 1 },
      latency_ms: 1
    },
    created_at: "2026-01-02T03:04:05.678Z",
    salt: "ab".repeat(16)
  })
  const hash = hex(chainEvent(genesis(SESSION), event).hash)
  return { hash, line: { event, hash } }
})()

describe("choirctl session", () => {
  it.effect("prints events as the pinned lines, the six fields of the chain first", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const second = { ...printedEvent, event: { ...printedEvent.event, rev: 2 } }
      const calls = yield* fakeChoird(home, { events: Effect.succeed([printedEvent, second]) })
      const ran = yield* choirctl(home, ["session", "events", SESSION, "--json"])
      const lines = documents(ran)
      assert.deepStrictEqual(lines, [
        { ...printedEvent.event, hash: printedEvent.hash },
        { ...second.event, hash: second.hash }
      ])
      assert.strictEqual(Object.keys(lines[0] as object).join(" "), "v rev event_type lane payload created_at hash")
      assert.deepStrictEqual(calls[0], { name: "events", id: SESSION, input: {} })
    })
  )

  it.effect("says where the log ends when nothing is left to print", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { events: Effect.succeed([]) })
      const ran = yield* choirctl(home, ["session", "events", SESSION, "--from", "9999"])
      assert.deepStrictEqual([ran.code, ran.out], [0, ""])
      assert.strictEqual(ran.err, `no events from revision 9999 on: the log of ${SESSION} ends at 12\n`)
      assert.strictEqual((yield* choirctl(home, ["session", "events", SESSION])).err, "")
    })
  )

  it.effect("asks for what --from, --last and --follow say", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      yield* choirctl(home, ["session", "events", SESSION, "--from", "3", "--follow"])
      yield* choirctl(home, ["session", "events", SESSION, "--last", "2"])
      assert.deepStrictEqual(
        calls.map(({ input }) => input),
        [{ from: 3, follow: "true" }, { last: 2 }]
      )
      assert.strictEqual((yield* choirctl(home, ["session", "events", SESSION, "--last", "-1"])).code, 2)
    })
  )

  it.effect("shows a session and what its agent summed up, whose text the terminal does not obey", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const summary = {
        title: "Moving\u001b[2J house",
        summary: "Boxes were packed.\nThe van is booked.",
        decisions: ["to move in May"],
        open_points: [],
        facts: ["the van is\nblue"]
      }
      const shown = { ...sessionDetail, summary }
      const calls = yield* fakeChoird(home, { session: Effect.succeed(shown) })
      const { out } = yield* choirctl(home, ["session", "show", SESSION])
      assert.deepStrictEqual(calls[0], { name: "show", id: SESSION })
      for (const line of [
        "status    stopped",
        "events    12, head abab",
        "bindings  workspace=main llm=sonnet",
        "  - the van is blue"
      ])
        assert.include(out, line)
      assert.include(out, "Boxes were packed.\nThe van is booked.\ndecisions:\n  - to move in May\nfacts:")
      assert.notInclude(out, "\u001b")
      assert.deepStrictEqual(document(yield* choirctl(home, ["session", "show", SESSION, "--json"])), shown)
      assert.strictEqual((yield* choirctl(home, ["session", "show", "Not a session"])).code, 2)
    })
  )

  it.effect("says where a session has no summary, and why it is frozen", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { session: Effect.succeed({ ...sessionDetail, frozen_reason: "the chain differs" }) })
      const { out } = yield* choirctl(home, ["session", "show", SESSION])
      assert.include(out, "frozen    the chain differs")
      assert.include(out, "summary   none")
    })
  )

  it.effect("resumes a session, or says why it does not go on", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["session", "resume", SESSION])
      assert.deepStrictEqual([ran.code, ran.out.trim()], [0, `agent-1 resumed ${SESSION}, epoch 4`])
      assert.deepStrictEqual(calls[0], { name: "resume", id: SESSION })
      const printed = document(yield* choirctl(home, ["session", "resume", SESSION, "--json"]))
      assert.deepStrictEqual(printed, { session_id: SESSION, agent_id: "agent-1", epoch: 4 })
      assert.strictEqual((yield* choirctl(home, ["session", "resume", "Nonsense"])).code, 2)

      const other = yield* temporaryFolder
      const error = { type: "NOT_LATEST", message: "agent-1 has run since", hint: "choirctl session list" }
      yield* fakeChoird(other, { resumed: Effect.fail(new Conflict({ error })) })
      const refused = yield* choirctl(other, ["session", "resume", SESSION, "--json"])
      assert.deepStrictEqual([refused.code, document(refused)], [1, { ok: false, error }])
    })
  )

  it.effect("takes a whole id, the beginning of one, or an agent's name for a session", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      for (const name of [SESSION, SESSION.slice(0, 4), "agent-1"]) {
        assert.strictEqual((yield* choirctl(home, ["session", "show", name])).code, 0)
        assert.strictEqual((yield* choirctl(home, ["session", "cancel", name, "research"])).code, 0)
      }
      assert.deepStrictEqual(new Set(calls.map(({ id }) => id)), new Set([SESSION]))
      const none = yield* choirctl(home, ["session", "verify", "nobody", "--json"])
      assert.strictEqual(none.code, 1)
      assert.nestedPropertyVal(document(none), "error.type", "UNKNOWN_SESSION")
    })
  )

  it.effect("shows the reasoning of models only for a whole proof, and the chain holds without it (D52)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const { hash, line } = thoughtful
      yield* fakeChoird(home, {
        events: Effect.succeed([line]),
        session: Effect.succeed({ ...sessionDetail, last_rev: 1, head: hash })
      })
      const file = join(home, "out.jsonl")
      const shown = yield* choirctl(home, ["session", "events", SESSION, "--json"])
      yield* choirctl(home, ["session", "export", SESSION, file])
      for (const text of [shown.out.trimEnd(), readFileSync(file, "utf8").trimEnd()]) {
        assert.notInclude(text, "raw thought")
        assert.include(text, "I look.")
        assert.strictEqual(
          verifiedByDocs(SESSION, [text]),
          `1 events, head ${hash}, 1 payloads not proved: print them with --reasoning`
        )
        assert.match(
          verifiedByDocs(SESSION, [text.replace('"edge"', '"core:a"')]),
          /^refused: revision 1 does not hold/u
        )
      }
      assert.notInclude((yield* choirctl(home, ["session", "events", SESSION])).out, "raw thought")
      const whole = yield* choirctl(home, ["session", "events", SESSION, "--json", "--reasoning"])
      assert.include(whole.out, "raw thought")
      assert.strictEqual(verifiedByDocs(SESSION, [whole.out.trimEnd()]), `1 events, head ${hash}`)
      yield* choirctl(home, ["session", "export", SESSION, join(home, "whole.jsonl"), "--reasoning"])
      assert.strictEqual(readFileSync(join(home, "whole.jsonl"), "utf8"), whole.out)
    })
  )

  it.effect("exports events and a manifest, 0600, over no file that is there", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const file = join(home, "out.jsonl")
      const session = Effect.succeed({ ...sessionDetail, last_rev: 1, head: printedEvent.hash })
      yield* fakeChoird(home, { session })
      const ran = yield* choirctl(home, ["session", "export", "agent-1", file, "--json"])
      assert.deepInclude(document(ran) as object, { path: file, events: 1, head: printedEvent.hash })
      const text = readFileSync(file, "utf8")
      assert.deepStrictEqual(JSON.parse(text), { ...printedEvent.event, hash: printedEvent.hash })
      const manifest = JSON.parse(readFileSync(`${file}.manifest.json`, "utf8"))
      assert.deepInclude(manifest, {
        format: "choir-session-export/1",
        session_id: SESSION,
        events: 1,
        head: printedEvent.hash,
        file: "out.jsonl",
        sha256: createHash("sha256").update(text).digest("hex")
      })
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      const again = yield* choirctl(home, ["session", "export", SESSION, file])
      assert.strictEqual(again.code, 1)
      assert.include(again.err, "already exists")
    })
  )

  it.effect("leaves no file of an export whose events do not end where the session does", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["session", "export", SESSION, join(home, "out.jsonl"), "--json"])
      assert.nestedPropertyVal(document(ran), "error.type", "SESSION_BROKEN")
      assert.deepStrictEqual(
        readdirSync(home).filter((name) => name.includes("out.jsonl")),
        []
      )
    })
  )

  it.effect("asks nothing about the deletion of a session that runs", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* fakeChoird(home, { session: Effect.succeed({ ...sessionDetail, status: "active" }) })
      const ran = yield* choirctl(home, ["session", "delete", SESSION])
      assert.strictEqual(ran.code, 1)
      assert.match(ran.err, /^error: the session \w+ of agent-1 is running\nhint: choirctl .*agent stop agent-1\n$/u)
    })
  )

  it.effect("archives a session, and deletes one only after a yes", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const archived = yield* choirctl(home, ["session", "archive", SESSION])
      assert.include(archived.out, `${SESSION} is archived: 12 events`)
      const asked = yield* choirctl(home, ["session", "delete", SESSION])
      assert.strictEqual(asked.code, 2)
      assert.include(asked.err, "12 events. All of them will be deleted.")
      assert.include(asked.err, ` session delete ${SESSION} --yes`)
      assert.notInclude(calls.map(({ name }) => name).join(), "delete")
      const deleted = yield* choirctl(home, ["session", "delete", SESSION, "--yes"])
      assert.include(deleted.out, "last revision 12")
      assert.deepStrictEqual(calls.at(-1), { name: "delete", id: SESSION })
    })
  )

  it.effect("lists sessions and jobs", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const sessions = yield* choirctl(home, ["session", "list", "agent-1"])
      assert.strictEqual(
        sessions.out,
        `SESSION           AGENT    STATUS  STARTED   ENDED  EVENTS\n${SESSION}  agent-1  active  just now  -      12\n`
      )
      assert.deepStrictEqual(calls[0]?.input, { agent_id: "agent-1" })
      const context = yield* choirctl(home, ["session", "context", SESSION, "--lane", "core:research"])
      assert.include(context.out, "user, 25 tokens\nWhat is new?\n")
      assert.include(context.out, "edge, large: 250 of 1,000 tokens (25 %) at revision 12\n")
      assert.match(context.out, /the user's messages +2 +40\n/u)
      assert.notInclude(context.out, "\u001b")
      const cores = yield* choirctl(home, ["session", "cores", SESSION])
      assert.strictEqual(
        cores.out,
        "research: reasoning, step 2, 2 minutes\n  task: Read it all\n  1 file read, last choir.fs.read, 1,200 tokens, 0.02 USD\n"
      )
      const [job] = JSON.parse((yield* choirctl(home, ["session", "cores", SESSION, "--json"])).out)
      assert.deepInclude(job, {
        job_name: "research",
        task: "Read it all",
        tokens: 1200,
        cost_usd: 0.02,
        ran_ms: 90_000
      })
      assert.strictEqual((yield* choirctl(home, ["session", "cores", "Not a session"])).code, 2)
    })
  )

  const ended = (rev: number | null, refused: string | null = null) => ({
    signal: Effect.succeed({ signal_id: SignalId.make("5"), rev, refused })
  })
  const inputs = (calls: ReadonlyArray<{ readonly input?: unknown }>) =>
    calls.map(({ input }) => {
      const { request_id, ...rest } = input as { readonly request_id: string }
      assert.match(request_id, /^[A-Za-z0-9-]{1,80}$/u)
      return rest
    })

  it.effect("cancels the job that is named, under both names of the command", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home)
      const ran = yield* choirctl(home, ["session", "cancel", SESSION, "tidy"])
      assert.strictEqual(ran.out, "tidy is being cancelled (signal 5)\n")
      yield* choirctl(home, ["session", "cancel", SESSION])
      const asJson = yield* choirctl(home, ["session", "core-cancel", SESSION, "tidy", "--json"])
      assert.deepStrictEqual(document(asJson), { job_name: "tidy", signal_id: "5", rev: null, refused: null })
      assert.deepStrictEqual(inputs(calls), [{ job_name: "tidy" }, {}, { job_name: "tidy" }])
      assert.strictEqual((yield* choirctl(home, ["session", "core-cancel", SESSION])).code, 2)
      assert.strictEqual((yield* choirctl(home, ["session", "cancel", SESSION, "No Job"])).code, 2)
    })
  )

  it.effect("stops the turn that runs, and says when it had ended before", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home, ended(9, "the turn had already ended"))
      const late = yield* choirctl(home, ["session", "stop", SESSION, "--wait"])
      assert.deepStrictEqual([late.code, late.out], [1, "not done, revision 9: the turn had already ended\n"])
      const asJson = yield* choirctl(home, ["session", "stop", SESSION, "--request-id", "r1", "--json"])
      assert.strictEqual(asJson.code, 1)
      assert.deepStrictEqual(document(asJson), { signal_id: "5", rev: 9, refused: "the turn had already ended" })
      assert.deepStrictEqual(inputs(calls), [{ wait_ms: SIGNAL_WAIT_MS_MAX }, {}])
    })
  )

  it.effect("injects an argument, or standard input, and waits when asked to", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home, ended(9))
      const ran = yield* choirctl(home, ["session", "inject", SESSION, "be quick", "--wait"])
      assert.deepStrictEqual(ran, { code: 0, out: "edge received it, revision 9\n", err: "" })
      yield* choirctl(home, ["session", "inject", SESSION, "--request-id", "r1"], { stdin: "line 1\nline 2\n" })
      assert.deepStrictEqual(inputs(calls), [
        { text: "be quick", wait_ms: SIGNAL_WAIT_MS_MAX },
        { text: "line 1\nline 2" }
      ])
      assert.nestedPropertyVal(calls[1], "input.request_id", "r1")
      for (const text of [[], [" "]])
        assert.strictEqual((yield* choirctl(home, ["session", "inject", SESSION, ...text])).code, 2)
      assert.lengthOf(calls, 2)
    })
  )

  it.effect("answers the job that asks, or the one that is named", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home, ended(9))
      const ran = yield* choirctl(home, ["session", "answer", SESSION, "the second one", "--wait"])
      assert.deepStrictEqual(ran, { code: 0, out: "the job received the answer, revision 9\n", err: "" })
      yield* choirctl(home, ["session", "answer", SESSION, "--job", "research"], { stdin: "the first\n" })
      assert.deepStrictEqual(inputs(calls), [
        { text: "the second one", wait_ms: SIGNAL_WAIT_MS_MAX },
        { text: "the first", job_name: "research" }
      ])
      assert.strictEqual((yield* choirctl(home, ["session", "answer", SESSION, " "])).code, 2)
      assert.lengthOf(calls, 2)
    })
  )

  it.effect("compacts and waits, unless told otherwise", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const calls = yield* fakeChoird(home, ended(12))
      const waited = yield* choirctl(home, ["session", "compact", SESSION])
      assert.deepStrictEqual(waited, { code: 0, out: "the working memory was compacted, revision 12\n", err: "" })
      yield* choirctl(home, ["session", "compact", SESSION, "--no-wait", "--lane", "core:tidy"])
      assert.deepStrictEqual(inputs(calls), [{ wait_ms: SIGNAL_WAIT_MS_MAX }, { lane: "core:tidy" }])
      assert.strictEqual((yield* choirctl(home, ["session", "compact", SESSION, "--lane", "core:"])).code, 2)
    })
  )

  it.effect("exits 75 when the event did not come in time, and says why nothing came of a signal", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* fakeChoird(home, ended(null))
          const late = yield* choirctl(home, ["session", "compact", SESSION, "--json"])
          assert.strictEqual(late.code, 75)
          assert.deepStrictEqual(document(late), { signal_id: "5", rev: null, refused: null })
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* fakeChoird(home, ended(4, "the session has\u001b[2J ended"))
          const ran = yield* choirctl(home, ["session", "inject", SESSION, "x", "--wait"])
          assert.deepStrictEqual(
            [ran.code, ran.out.replaceAll("\u{FFFD}", "?")],
            [1, "not done, revision 4: the session has?[2J ended\n"]
          )
        })
      )
      const error = { type: "NOT_RUNNING", message: "the session is stopped", hint: "choirctl agent start agent-1" }
      yield* fakeChoird(home, { signal: Effect.fail(new Conflict({ error })) })
      const refused = yield* choirctl(home, ["session", "compact", SESSION, "--json"])
      assert.strictEqual(refused.code, 1)
      assert.deepStrictEqual(document(refused), { ok: false, error })
    })
  )

  it.effect("prints the verdict of verify, and exits 1 when the chain does not hold", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const head = "cd".repeat(32)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* fakeChoird(home)
          const good = yield* choirctl(home, ["session", "verify", SESSION, "--json"])
          assert.deepStrictEqual(document(good), { ok: true, events: 12, head })
          assert.strictEqual(good.code, 0)
        })
      )
      const verdict = { ok: false, events: 12, head, problem: { rev: 4, reason: "another hash" } }
      yield* fakeChoird(home, { verify: Effect.succeed(verdict) })
      const bad = yield* choirctl(home, ["session", "verify", SESSION, "--json"])
      assert.strictEqual(bad.code, 1)
      assert.deepStrictEqual(document(bad), verdict)
      const people = yield* choirctl(home, ["session", "verify", SESSION])
      assert.strictEqual(people.out, "not valid at revision 4: another hash\n")
    })
  )
})
