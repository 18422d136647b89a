/** Where the files of a workspace came from: no sequence of sessions, jobs, compactions and restarts makes a file's text count as trusted. */
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { mkdirSync, symlinkSync } from "node:fs"
import { join } from "node:path"
import { CallId, coreLane, EDGE, InboxId, JobName, type LaneId, ResourceName } from "#schema/Ids.ts"
import { type Source, SOURCES_MAX } from "#schema/Source.ts"
import { LockRequest, type ToolEffect } from "#schema/Tool.ts"
import { decide } from "#src/agent/arbiter/decide.ts"
import type { Command } from "#src/agent/arbiter/Command.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { noTaint, sourcesOf, type Taint, taintAfter } from "#src/choird/memory/laneTaint.ts"
import { WorkspaceLabels } from "#src/choird/sessions/WorkspaceLabels.ts"
import { compactionLimit } from "#src/shared/session/compactWindow.ts"
import { foldAll, initialState } from "#src/shared/session/fold.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { decodeState, encodeState, FOLD_VERSION } from "#src/shared/session/snapshot.ts"
import type { SessionState } from "#src/shared/session/State.ts"
import { describeStores, temporaryFolder } from "../../support/engines.ts"
import { makeRandom, pick, situation } from "../../support/history.ts"
import { atSize } from "../../support/size.ts"
import { newTalk, stores, type Talk } from "../../support/stores.ts"

const JOB = JobName.make("a")
const CORE = coreLane(JOB)
const SESSIONS = 6
const STEPS = 14
const usage = { input_tokens: 1, output_tokens: 1 }
const said = { purpose: "turn", model: "small", finish_reason: "stop", usage, latency_ms: 0 } as const

/** What is true of the disk and the lanes, told by nothing of the code under test. */
interface Truth {
  /** What may be in any file, and whether this session is known to have written it. */
  readonly disk: Set<Source>
  isAnywhere: boolean
  isOwn: boolean
  /** What is in single files besides. */
  readonly files: Map<string, Set<Source>>
  received: boolean
  edge: Set<Source>
  job: Set<Source> | undefined
}

interface Call {
  readonly name: string
  readonly effect: ToolEffect
  readonly reads: boolean
  readonly writes: boolean
  /** It works below `.choirtmp`. */
  readonly staged?: boolean
  readonly anywhere?: boolean
  readonly brings?: Source
  /** The one file that it reads or writes. */
  readonly path?: string
  /** It may write anything, and says in the end that it was this file. */
  readonly compares?: string
}

const PATHS = ["a.md", "b/c.md"]
const PHOTO = ".choirtmp/recv/photo-1.txt"

const CALLS = {
  web: { name: "choir-web-fetch", effect: "none", reads: false, writes: false },
  read: { name: "choir-fs-read", effect: "none", reads: true, writes: false },
  readReceived: { name: "choir-fs-read", effect: "none", reads: true, writes: false, staged: true, path: PHOTO },
  find: { name: "choir-fs-find", effect: "none", reads: true, writes: false },
  write: { name: "choir-fs-write", effect: "workspace", reads: false, writes: true },
  edit: { name: "choir-fs-edit", effect: "workspace", reads: true, writes: true },
  exec: { name: "choir-exec", effect: "workspace", reads: true, writes: true, anywhere: true },
  compared: { name: "choir-exec", effect: "workspace", reads: true, writes: true, anywhere: true, compares: "a.md" },
  ofImage: { name: "notes-keep", effect: "workspace", reads: true, writes: true, anywhere: true }
} as const satisfies Readonly<Record<string, Call>>

const add = (to: Set<Source>, from: Iterable<Source>) => {
  for (const source of from) to.add(source)
}

/** One session over a workspace: commands go through the real decisions and the real fold. */
const makeSession = Effect.fnUntraced(function* (talk: Talk, path: string) {
  const labels = yield* WorkspaceLabels
  const store = yield* EventStore
  let workspace_label = yield* labels.of(path)
  let state: SessionState = initialState
  let taint: Taint = noTaint
  let sent = 0

  const give = (command: Command) => {
    const events = Result.getOrThrow(
      decide(state, command, situation({ session_id: talk.caller.session_id, workspace_label }))
    )
    const before = talk.rev
    talk.commit(...events)
    state = Result.getOrThrow(foldAll(state, talk.events.slice(before)))
    taint = talk.events.slice(before).reduce(taintAfter, taint)
    return talk.events.slice(before)
  }
  const propose = (lane: LaneId, name: string): CallId => {
    const [output] = give({ type: "Output", lane, output: { ...said, tool_calls: [{ name, input: { n: talk.rev } }] } })
    if (output?.event_type !== "ModelOutput") throw new Error("no output")
    return CallId.make(output.payload.tool_calls[0]?.call_id ?? "")
  }
  const ask = (lane: LaneId, call_id: CallId, name: string, { effect = "none", staged = false } = {}) => {
    const locks = staged ? [LockRequest.make({ resource: "choirtmp", mode: "S" })] : []
    const tool = name.replaceAll("-", ".")
    const request = { call_id, lane, tool, input: {}, locks, allowed_tools: undefined, capabilities: [] }
    give({ type: "Request", ...request, effect: effect as ToolEffect, beside_jobs: true })
    return locks
  }
  return {
    state: () => state,
    /** The part of the fold that memory labels words by, which has to say the same. */
    taint: () => taint,
    give,
    /** A call up to its result, or cut off in its middle. */
    call: (lane: LaneId, { brings, effect, name, ...more }: Call, ends = true) => {
      const call_id = propose(lane, name)
      const locks = ask(lane, call_id, name, { effect, staged: more.staged ?? false })
      const { path } = more
      const writes = path === undefined || !more.writes ? {} : { writes: [path] }
      const compares = more.compares === undefined ? {} : { compares: true }
      give({ type: "Grant", lane, call_id, locks, dirty: false, beside_jobs: true, ...writes, ...compares })
      const outside = brings === undefined ? {} : { untrusted: true, sources: [brings] }
      const status = ends ? "success" : "unknown_after_crash"
      const compared = ends && more.compares !== undefined ? { files: { changed: [more.compares] } } : {}
      const files = path === undefined ? compared : { files: { shows: [path], changed: more.writes ? [path] : [] } }
      give({ type: "Result", lane, call_id, result: { status, summary: "s", duration_ms: 0, ...outside }, ...files })
    },
    /** A call that has begun. */
    begin: (lane: LaneId, { compares, effect, name }: Call) => {
      const call_id = propose(lane, name)
      const locks = ask(lane, call_id, name, { effect })
      const compared = compares === undefined ? {} : { compares: true }
      give({ type: "Grant", lane, call_id, locks, dirty: false, beside_jobs: true, ...compared })
      return call_id
    },
    end: (lane: LaneId, call_id: CallId, more: Partial<Extract<Command, { type: "Result" }>>) => {
      const status = more.files === undefined ? "unknown_after_crash" : "success"
      give({ type: "Result", lane, call_id, result: { status, summary: "s", duration_ms: 0 }, ...more })
    },
    spawn: () => {
      const call_id = propose(EDGE, "choir-core-spawn")
      ask(EDGE, call_id, "choir-core-spawn")
      const start = {
        job_name: JOB,
        task_spec: "do",
        context_bundle: { facts: [], excerpts: [], constraints: [] },
        tool_constraints: { allowed_tools: [], time_budget_ms: 0 },
        verbosity: "normal"
      } as const
      give({ type: "Spawn", call_id, model: "small", tools: [], start })
    },
    /** choird stores what was committed; then the agent starts again from a snapshot. */
    restart: Effect.gen(function* () {
      const reply = yield* store.append(talk.caller, talk.heartbeat(sent))
      assert.strictEqual(reply.action, "OK")
      sent = talk.rev
      state = Result.getOrThrow(decodeState(state.rev, FOLD_VERSION, JSON.parse(Result.getOrThrow(encodeState(state)))))
      workspace_label = yield* labels.of(path, talk.caller.session_id)
    })
  }
})
type Session = Effect.Success<ReturnType<typeof makeSession>>

const message = (inbox_id: number, files: boolean): Command => ({
  type: "UserMessage",
  message: {
    type: "UserMessage",
    inbox_id: InboxId.make(String(inbox_id)),
    dm: ResourceName.make("desk"),
    text: "hi",
    attachments: files ? [{ path: PHOTO, name: "a", mime: "text/plain", bytes: 1 }] : [],
    created_at: ""
  }
})

const step = (session: Session, truth: Truth, random: () => number, site: Source): string => {
  const lane = truth.job !== undefined && random() < 0.5 ? CORE : EDGE
  const mine = lane === EDGE ? truth.edge : (truth.job ?? new Set())
  const kind = random()
  if (kind < 0.12 && truth.job === undefined) {
    session.spawn()
    truth.job = new Set(truth.edge)
    return "spawn"
  }
  if (kind < 0.24 && truth.job !== undefined) {
    session.give({ type: "Output", lane: CORE, output: { ...said, text: "done", tool_calls: [] } })
    session.give({ type: "StopCore", job_name: JOB, outcome: "completed", summary: "done" })
    if (truth.job.size > 0) add(truth.edge, ["job:a", ...truth.job])
    truth.job = undefined
    return "stop"
  }
  if (kind < 0.32) {
    const boundary_rev = compactionLimit(session.state(), lane)
    const deltas = [{ mode: "append", summary: "some of it" }] as const
    session.give({ type: "Compact", lane, deltas, boundary_rev })
    return "compact"
  }
  const name = pick(random, Object.keys(CALLS) as ReadonlyArray<keyof typeof CALLS>)
  const known: Call = name === "web" ? { ...CALLS.web, brings: site } : CALLS[name]
  const isOfOne = known.path === undefined && known.anywhere !== true && name !== "web"
  const call: Call = isOfOne ? { ...known, path: pick(random, PATHS) } : known
  const ends = random() < 0.9
  session.call(lane, call, ends)
  if (call.writes && call.compares === undefined) written(truth, call.path, mine)
  if (call.reads) add(mine, readIn(truth, call))
  if (truth.received && (call.staged === true || call.anywhere === true)) add(mine, ["file"])
  if (call.brings !== undefined) mine.add(call.brings)
  // What a command leaves outside of the workspace is known to be nowhere in it.
  const told = ends && call.compares !== undefined ? [call.compares, "/tmp"] : [call.path]
  if (call.writes) for (const path of told) written(truth, path, mine)
  return `${name} of ${call.path ?? "anything"} on ${lane}${ends ? "" : ", cut off"}`
}

const readIn = ({ disk, files, isAnywhere }: Truth, { path }: Call): ReadonlyArray<Source> => {
  const found = [...files].flatMap(([file, sources]) => (path === undefined || path === file ? [...sources] : []))
  const isLabelled = isAnywhere || (path === undefined ? files.size > 0 : files.has(path))
  return isLabelled ? ["file", ...disk, ...found] : []
}

/** A call that names no file may have written any. Once its session knows so, nothing is kept of single files. */
const written = (truth: Truth, path: string | undefined, mine: ReadonlySet<Source>) => {
  if (mine.size === 0) return
  if (path === undefined || truth.isOwn) {
    add(truth.disk, mine)
    truth.isAnywhere = true
    truth.isOwn = true
    return
  }
  const sources = truth.files.get(path) ?? new Set<Source>()
  add(sources, mine)
  truth.files.set(path, sources)
}

/** In a stored label the files are not kept apart from what may be anywhere. */
const stored = (truth: Truth) => {
  if (!truth.isAnywhere) return
  for (const sources of truth.files.values()) add(truth.disk, sources)
}

const compare = (session: Session, truth: Truth, where: string) => {
  for (const [lane, expected] of [[EDGE, truth.edge] as const, [CORE, truth.job] as const]) {
    if (expected === undefined) continue
    const memory = laneOf(session.state(), lane)
    assert.strictEqual(memory?.tainted, expected.size > 0, `${where}: ${lane}`)
    assert.sameMembers([...(memory?.sources ?? [])], [...expected], `${where}: ${lane}`)
    assert.sameMembers([...sourcesOf(session.taint(), lane)], [...expected], `${where}: ${lane} in memory`)
  }
}

const lives = Effect.fnUntraced(function* (seed: number) {
  const random = makeRandom(seed)
  const { config } = yield* (yield* ConfigStore).current
  const path = config.workspaces["main" as ResourceName]?.path ?? ""
  yield* (yield* WorkspaceLabels).drop(path)
  const truth: Truth = {
    disk: new Set(),
    isAnywhere: false,
    isOwn: false,
    files: new Map(),
    received: false,
    edge: new Set(),
    job: undefined
  }
  const done: Array<string> = []
  for (let n = 1; n <= SESSIONS; n += 1) {
    truth.edge = new Set()
    truth.job = undefined
    truth.isOwn = false
    const session = yield* makeSession(yield* newTalk, path)
    const files = random() < 0.2
    session.give(message(1, files))
    truth.received ||= files
    if (files) truth.files.set(PHOTO, new Set<Source>(["file:desk"]))
    done.push(`session ${n}${files ? " with a file" : ""}`)
    for (let count = 0; count < STEPS; count += 1) {
      done.push(step(session, truth, random, `web:s${n}.example`))
      if (random() < 0.15) {
        yield* session.restart
        stored(truth)
        done.push("restart")
      }
      compare(session, truth, `seed ${seed}: ${done.join("; ")}`)
    }
    yield* session.restart
    stored(truth)
  }
  assert.isAtMost(truth.disk.size, SOURCES_MAX)
})

describeStores("labels of a workspace", (it) => {
  it.effect("outlive sessions, jobs, compactions and restarts, and come from nowhere else", () =>
    Effect.forEach(
      atSize(
        [...Array(12).keys()],
        Array.from({ length: 200 }, (_, n) => 12 + n)
      ),
      lives,
      { discard: true }
    ).pipe(Effect.provide(stores))
  )

  it.effect("come back with a session that is continued after a person trusted or emptied the workspace", () =>
    Effect.gen(function* () {
      const { config } = yield* (yield* ConfigStore).current
      const path = config.workspaces["main" as ResourceName]?.path ?? ""
      const labels = yield* WorkspaceLabels
      const web: Call = { ...CALLS.web, brings: "web:s.example" }
      yield* labels.drop(path)
      const session = yield* makeSession(yield* newTalk, path)
      session.give(message(1, true))
      session.call(EDGE, web)
      session.call(EDGE, CALLS.write)
      yield* session.restart
      const label = yield* labels.of(path)
      assert.deepStrictEqual(label, { written_from: ["file:desk", "web:s.example"], received: true })
      // A session from before labels were kept has none either.
      yield* labels.drop(path)
      assert.deepStrictEqual(yield* labels.of(path), {})
      yield* session.restart
      session.call(EDGE, web)
      session.call(EDGE, CALLS.write)
      yield* session.restart
      assert.deepStrictEqual(yield* labels.of(path), label)
      const later = yield* makeSession(yield* newTalk, path)
      later.give(message(1, false))
      later.call(EDGE, CALLS.read)
      assert.deepStrictEqual(laneOf(later.state(), EDGE)?.sources, ["file", "file:desk", "web:s.example"])
      yield* labels.drop(path)
    }).pipe(Effect.provide(stores))
  )

  it.effect(
    "count what a command under way may write as written, but for its own session, until its result says what it wrote",
    () =>
      Effect.gen(function* () {
        const { config } = yield* (yield* ConfigStore).current
        const path = config.workspaces["main" as ResourceName]?.path ?? ""
        const labels = yield* WorkspaceLabels
        yield* labels.drop(path)
        const talk = yield* newTalk
        const session = yield* makeSession(talk, path)
        session.give(message(1, false))
        session.call(EDGE, { ...CALLS.web, brings: "web:s.example" })
        session.spawn()
        const exec = session.begin(EDGE, CALLS.compared)
        yield* session.restart
        const { session_id } = talk.caller
        assert.deepStrictEqual(yield* labels.of(path), { written_from: ["web:s.example"] })
        assert.deepStrictEqual(yield* labels.of(path, session_id), {})
        session.call(CORE, { ...CALLS.read, path: "clean.md" })
        assert.includeMembers([...(laneOf(session.state(), CORE)?.sources ?? [])], ["file"])
        session.end(EDGE, exec, { files: { changed: ["a.md"] } })
        yield* session.restart
        const sources: ReadonlyArray<Source> = ["web:s.example"]
        const only_in = ["a.md", "/tmp"].map((each) => ({ path: each, sources }))
        assert.deepStrictEqual(yield* labels.of(path), { written_from: sources, only_in })
        // One that a crash cut off may have written anything.
        const cut = session.begin(EDGE, CALLS.compared)
        session.end(EDGE, cut, {})
        yield* session.restart
        assert.deepStrictEqual(yield* labels.of(path), { written_from: ["web:s.example", "file"] })
        yield* labels.drop(path)
      }).pipe(Effect.provide(stores))
  )

  it.effect("count what a command of a lane without a label may be copying as written, also where it never ends", () =>
    Effect.gen(function* () {
      const { config } = yield* (yield* ConfigStore).current
      const path = config.workspaces["main" as ResourceName]?.path ?? ""
      const labels = yield* WorkspaceLabels
      const sources: ReadonlyArray<Source> = ["web:s.example"]
      const only_in = [{ path: "a.md", sources }]
      yield* labels.drop(path)
      const clean = yield* makeSession(yield* newTalk, path)
      clean.give(message(1, false))
      const exec = clean.begin(EDGE, CALLS.exec)
      yield* clean.restart
      assert.deepStrictEqual(yield* labels.all, new Map())
      clean.end(EDGE, exec, {})
      const writer = yield* makeSession(yield* newTalk, path)
      writer.give(message(1, false))
      writer.call(EDGE, { ...CALLS.web, brings: "web:s.example" })
      writer.call(EDGE, { ...CALLS.write, path: "a.md" })
      yield* writer.restart
      assert.deepStrictEqual(yield* labels.of(path), { written_from: sources, only_in })
      const talk = yield* newTalk
      const copier = yield* makeSession(talk, path)
      copier.give(message(1, false))
      copier.begin(EDGE, CALLS.exec)
      yield* copier.restart
      assert.deepStrictEqual(yield* labels.of(path), { written_from: sources })
      assert.deepStrictEqual(yield* labels.of(path, talk.caller.session_id), { written_from: sources, only_in })
      const later = yield* makeSession(yield* newTalk, path)
      later.give(message(1, false))
      later.call(EDGE, { ...CALLS.read, path: "copied.md" })
      assert.deepStrictEqual(laneOf(later.state(), EDGE)?.sources, ["file", "web:s.example"])
      yield* labels.drop(path)
    }).pipe(Effect.provide(stores))
  )

  it.effect("are those of the folder, by whatever path it is configured", () =>
    Effect.gen(function* () {
      const labels = yield* WorkspaceLabels
      const sql = yield* SqlClient.SqlClient
      const root = yield* temporaryFolder
      const [real, link] = [join(root, "real"), join(root, "link")]
      mkdirSync(real)
      symlinkSync(real, link)
      const store = (path: string, label: string) =>
        sql`INSERT INTO choir_control.workspace_labels (path, label) VALUES (${path}, ${label}::jsonb)`
      yield* store(real, '{"written_from":["web:a.example"]}')
      // An earlier Choir stored the path as it was written.
      yield* store(link, '{"received":true}')
      yield* store(`${link}/gone`, '{"written_from":["web:b.example"]}')
      const received = join(root, "other")
      for (const path of [received, `${link}/gone`]) yield* labels.receive(path)
      assert.deepStrictEqual(yield* labels.of(received), { received: true })
      assert.deepStrictEqual(yield* labels.of(`${real}/gone`), { written_from: ["web:b.example"], received: true })
      for (const path of [received, `${real}/gone`]) yield* labels.drop(path)
      yield* store(`${link}/gone`, '{"written_from":["web:b.example"]}')
      for (const path of [real, link, `${real}//`, `${root}/link/../real`, `${root}/none/../link/.`])
        assert.deepStrictEqual(yield* labels.of(path), { written_from: ["web:a.example"], received: true }, path)
      assert.deepStrictEqual(yield* labels.of(`${real}/gone`), { written_from: ["web:b.example"] })
      yield* labels.drop(`${link}/`)
      assert.deepStrictEqual(yield* labels.of(real), {})
      const left = [...(yield* labels.all).keys()].filter((key) => key.startsWith(root))
      assert.deepStrictEqual(left, [`${real}/gone`])
      yield* labels.drop(`${link}/gone`)
    }).pipe(Effect.scoped, Effect.provide(stores))
  )
})
