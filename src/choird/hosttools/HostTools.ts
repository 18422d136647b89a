/**
 * The tools that choird runs for agents (EXECUTE_HOST_TOOL). A run belongs to its session's epoch, not to the request that began it: a
 * caller that hangs up and asks again rejoins it. It ends when the session's log has the result of the call, and with the epoch at the
 * latest.
 */
import { Context, Effect, Fiber, Layer, Schema, type Scope, Semaphore, Stream } from "effect"
import type { Caller } from "#schema/AgentApi.ts"
import type { CallId, SessionId } from "#schema/Ids.ts"
import { shownName } from "#schema/Tool.ts"
import { restarted } from "#src/shared/background.ts"
import { canonicalJson, EVENT_DEPTH_MAX, isDeeperThan, storableJson } from "#src/shared/text/canonicalJson.ts"
import { defectWords, logDefect } from "#src/shared/defects.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"
import type { Appended } from "#src/choird/sessions/Appends.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { EventStore } from "#src/choird/sessions/EventStore.ts"
import { CallResults, type HostCallKey } from "./CallResults.ts"
import { failed, type HostOutcome, type HostRun, type HostTool } from "./HostTool.ts"
import { memoryQuery } from "./memoryQuery.ts"

/** Host tools that choird runs at once for one session, those included whose agent hung up and gave no result yet. */
export const HOST_TOOLS_RUNNING_MAX = 16
/** A host tool's output as JSON, so that its answer stays below BODY_BYTES_MAX. */
export const HOST_OUTPUT_BYTES_MAX = 768 * 1024

/** A request that choird does not run. `kind` is also the API's error type. */
export class HostToolRefused extends Schema.TaggedError<HostToolRefused>()("HostToolRefused", {
  kind: Schema.Literals(["NOT_AVAILABLE", "BAD_REQUEST", "CALL_ID_REUSED", "RATE_LIMITED"]),
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

export interface HostRequest {
  readonly tool_name: string
  readonly call_id: CallId
  readonly input: Schema.Json
  /** Whether a person was asked about the call; absent: nobody was. */
  readonly is_asked?: boolean
}

/** All host tools, by name. */
export class HostTools extends Context.Service<
  HostTools,
  {
    /**
     * Runs a tool for a caller whose lease and job were checked, in a fiber of `epoch`, the scope that ends with the caller's epoch.
     * A tool without an effect runs each time; any other once for each call_id, and a repeated request joins the run or gets its outcome.
     * A run that breaks or finds no database is an `error`, one beyond its time a `timeout`, one that a crash cut off `unknown_after_crash`.
     */
    execute(caller: Caller, request: HostRequest, epoch: Scope.Scope): Effect.Effect<HostOutcome, HostToolRefused>
    /** Runs a tool for a trial, which has no session: within `scope`, and with an outcome that is kept nowhere. Tools of sessions are refused. */
    runOnce(
      caller: Pick<Caller, "agent_id" | "session_id">,
      request: HostRequest,
      scope: Scope.Scope
    ): Effect.Effect<HostOutcome, HostToolRefused>
    /** Ends what still runs for a call whose result is in the log: it was cancelled, or its time passed, and nobody waits for it. */
    ended(session_id: SessionId, call_id: CallId): Effect.Effect<void>
  }
>()("choir/choird/HostTools") {
  static readonly layer = (tools: ReadonlyArray<HostTool>) => Layer.effect(HostTools, make(tools))
}

const refused = (kind: HostToolRefused["kind"], reason: string) => new HostToolRefused({ kind, reason })

const reused = (call_id: CallId) =>
  refused(
    "CALL_ID_REUSED",
    `the call_id ${call_id} belongs to an earlier, different call: a new call takes a new call_id`
  )

/** An outcome that can be stored and sent. */
const fitting = ({ name }: HostTool, { output, status }: HostOutcome): HostOutcome => {
  const storable = storableJson(output)
  return Buffer.byteLength(JSON.stringify(storable)) <= HOST_OUTPUT_BYTES_MAX
    ? { status, output: storable }
    : failed("error", `${shownName(name)} gave more than ${HOST_OUTPUT_BYTES_MAX} bytes: ask for less`)
}

/** A run that ends with an outcome, whatever happens in it. */
const bounded = (tool: HostTool, run: HostRun): Effect.Effect<HostOutcome> => {
  const { timeout_ms } = tool
  const name = shownName(tool.name)
  return run.pipe(
    Effect.map((outcome) => fitting(tool, outcome)),
    Effect.timeoutOrElse({
      duration: timeout_ms,
      orElse: () => Effect.succeed(failed("timeout", `${name} did not end within ${timeout_ms} ms`))
    }),
    Effect.catchTag("DatabaseAway", ({ problem }) =>
      Effect.as(
        Effect.logWarning("a host tool found no database", { tool: tool.name }, problem),
        failed("error", `${name} needs choird's database, which does not answer now: try again later`)
      )
    ),
    Effect.catchDefect((defect) =>
      Effect.map(Effect.annotateLogs(logDefect("a host tool crashed", defect), { tool: tool.name }), (ref) =>
        failed("error", defectWords(`${name} crashed`, ref))
      )
    )
  )
}

/** Host tools that need no session. */
const OF_TRIALS = /^choir\.web\./u

/** Finds the tool of a request, with the run of an input that fits. */
const makePrepare = (tools: ReadonlyArray<HostTool>) => {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  return Effect.fnUntraced(function* (
    caller: Caller,
    { call_id, input, is_asked = false, tool_name }: HostRequest,
    epoch: Scope.Scope
  ) {
    const tool = byName.get(tool_name)
    if (tool === undefined) return yield* refused("NOT_AVAILABLE", "choird runs no host tool of that name")
    if (isDeeperThan(input, EVENT_DEPTH_MAX))
      return yield* refused("BAD_REQUEST", `an input may nest at most ${EVENT_DEPTH_MAX} levels`)
    const work = yield* Effect.mapBoth(tool.prepare(input, caller, epoch, { call_id, is_asked }), {
      onSuccess: (run) => bounded(tool, run),
      onFailure: ({ problem }) =>
        refused(
          "BAD_REQUEST",
          `the input does not fit ${shownName(tool_name)}: ${problem}`.slice(0, API_PROBLEM_CHARS_MAX)
        )
    })
    return { tool, work }
  })
}

const runId = (session_id: SessionId, call_id: CallId) => `${session_id} ${call_id}`

type Run = Fiber.Fiber<HostOutcome, HostToolRefused>

/** The runs of tools: so many at a time for each session, and each found by its call. */
const makeOpenRuns = () => {
  const counts = new Map<SessionId, number>()
  const open = new Map<string, Set<Run>>()

  const keep = (id: string, run: Run) => {
    open.set(id, (open.get(id) ?? new Set()).add(run))
    run.addObserver(() => {
      const left = open.get(id)
      left?.delete(run)
      if (left?.size === 0) open.delete(id)
    })
  }

  return {
    /** Begins a run that neither its caller's interruption nor its caller's end touches. */
    begin: Effect.fnUntraced(function* (
      session_id: SessionId,
      call_id: CallId,
      work: Effect.Effect<HostOutcome, HostToolRefused>,
      epoch: Scope.Scope
    ) {
      const count = counts.get(session_id) ?? 0
      if (count >= HOST_TOOLS_RUNNING_MAX)
        return yield* refused(
          "RATE_LIMITED",
          `${count} host tools are already running for this session: wait for one to end`
        )
      counts.set(session_id, count + 1)
      const run: Run = yield* Effect.forkIn(work, epoch)
      keep(runId(session_id, call_id), run)
      run.addObserver(() => {
        const left = (counts.get(session_id) ?? 1) - 1
        if (left > 0) counts.set(session_id, left)
        else counts.delete(session_id)
      })
      return run
    }, Effect.uninterruptible),
    /** Interrupts the runs of a call. */
    end: (session_id: SessionId, call_id: CallId) => {
      for (const run of open.get(runId(session_id, call_id)) ?? []) run.interruptUnsafe()
    }
  }
}

/** Does work with an effect at most once, whatever is asked again. */
const once = Effect.fnUntraced(function* (key: HostCallKey, work: Effect.Effect<HostOutcome>) {
  const results = yield* CallResults
  // An earlier request may have run it, so that no outcome would be true; the agent asks again.
  const claim = yield* databaseDefect(results.claim(key))
  switch (claim.type) {
    case "reused":
      return yield* reused(key.call_id)
    case "done":
      return claim.outcome
    case "in doubt":
      return failed("unknown_after_crash", "choird or the agent went down while this ran; its effect is not known")
    case "mine":
      // What happened is answered even when it cannot be kept; asked again, it is in doubt.
      return yield* Effect.tap(work, (outcome) =>
        Effect.catchCause(results.keep(key, outcome), (cause) =>
          Effect.logError("the outcome of a host tool was not kept", { call_id: key.call_id }, cause)
        )
      )
  }
})

const make = Effect.fnUntraced(function* (tools: ReadonlyArray<HostTool>) {
  const results = yield* CallResults
  const { begin, end } = makeOpenRuns()
  // Runs with an effect, by session and call_id, so that a repetition joins them; one request at a time looks and enters.
  const runs = new Map<string, { readonly digest: string; readonly run: Run }>()
  const entering = yield* Semaphore.make(1)
  const enter = Effect.fnUntraced(
    function* (key: HostCallKey, work: Effect.Effect<HostOutcome>, epoch: Scope.Scope) {
      const id = runId(key.session_id, key.call_id)
      const running = runs.get(id)
      if (running !== undefined) return running.digest === key.digest ? running.run : yield* reused(key.call_id)
      const run = yield* begin(
        key.session_id,
        key.call_id,
        Effect.provideService(once(key, work), CallResults, results),
        epoch
      )
      runs.set(id, { digest: key.digest, run })
      run.addObserver(() => runs.delete(id))
      return run
    },
    entering.withPermit,
    Effect.uninterruptible
  )

  const prepare = makePrepare(tools)

  return HostTools.of({
    runOnce: Effect.fn("HostTools.runOnce")(function* (caller, request, scope) {
      if (!OF_TRIALS.test(request.tool_name))
        return yield* refused("NOT_AVAILABLE", `${shownName(request.tool_name)} needs a session; trials have none`)
      const { work } = yield* prepare({ ...caller, epoch: 1, standing: "current" }, request, scope)
      return yield* Fiber.join(yield* begin(caller.session_id, request.call_id, work, scope))
    }),
    ended: (session_id, call_id) => Effect.sync(() => end(session_id, call_id)),
    execute: Effect.fn("HostTools.execute")(function* (caller, request, epoch) {
      const { call_id, input, tool_name } = request
      const { tool, work } = yield* prepare(caller, request, epoch)
      const { session_id } = caller
      if ((tool.effectOf?.(input) ?? tool.effect) === "none")
        return yield* Fiber.join(yield* begin(session_id, call_id, work, epoch))
      const digest = sha256(canonicalJson({ tool_name, input }))
      return yield* Fiber.join(yield* enter({ session_id, call_id, digest }, work, epoch))
    })
  })
})

/** Ends the runs of calls whose result the log has: a lane was cancelled, or stopped waiting. */
export const layerRunEndings = Layer.effectDiscard(
  Effect.gen(function* () {
    const { appended } = yield* EventStore
    const tools = yield* HostTools
    const end = ({ events, session_id }: Appended) =>
      Effect.forEach(
        events,
        (event) =>
          event.event_type === "ToolResultCommitted" ? tools.ended(session_id, event.payload.call_id) : Effect.void,
        { discard: true }
      )
    yield* Stream.runForEach(appended, end).pipe(
      restarted("the watch for ended calls"),
      Effect.forkScoped({ startImmediately: true })
    )
  })
)

/** The tools of choird over its stores, and further ones. */
export const layerHostTools = <E, R>(further: Effect.Effect<ReadonlyArray<HostTool>, E, R>) =>
  layerRunEndings.pipe(
    Layer.provideMerge(
      Layer.unwrap(
        Effect.map(Effect.all([memoryQuery, further]), ([query, tools]) => HostTools.layer([query, ...tools]))
      )
    ),
    Layer.provide(CallResults.layer)
  )
