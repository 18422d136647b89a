/** Sessions that follow each other in one real workspace, with the real file tools, and what is kept of its label between them. */
import { rgPath } from "@vscode/ripgrep"
import { Context, Effect, Fiber, type Schema } from "effect"
import type { PayloadOf } from "#schema/Event.ts"
import { SessionId } from "#schema/Ids.ts"
import type { UserMessage } from "#schema/Signal.ts"
import type { Source } from "#schema/Source.ts"
import type { WorkspaceLabel } from "#schema/WorkspaceLabel.ts"
import { ProcessRunner } from "#src/agent/process/ProcessRunner.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { fsEdit } from "#src/agent/tools/fsEdit.ts"
import { fsFind } from "#src/agent/tools/fsFind.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import { fsSearch } from "#src/agent/tools/fsSearch.ts"
import { fsSend } from "#src/agent/tools/fsSend.ts"
import { fsWrite } from "#src/agent/tools/fsWrite.ts"
import type { Tool } from "#src/agent/tools/Tool.ts"
import {
  joinedOrigins,
  labelAfter,
  labelOfOrigin,
  originOfLabel,
  settledLabel
} from "#src/shared/session/workspaceLabel.ts"
import { byLane, job } from "./laneScripts.ts"
import { makeMemoryControlPlane, type MemoryControlPlane } from "./testing/MemoryControlPlane.ts"
import { calls, inOrder, says } from "./testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, testTool } from "./testing/TestAgent.ts"
import { toolServices } from "./workspace.ts"

/** The page that these sessions read. */
export const PAGE: Source = "web:evil.example"

export type Wanted = readonly [name: string, input: Schema.Json]

/** A message of the person, and the calls that the agent makes for it, one after the other. */
interface Talk {
  readonly attachments?: UserMessage["attachments"]
  readonly wanted: ReadonlyArray<Wanted>
  /** The agent starts again before it. */
  readonly restarts?: boolean
}

/** What one session made of it. */
interface Lived {
  readonly results: ReadonlyArray<PayloadOf<"ToolResultCommitted">>
  /** Where edge's text from outside is from; empty where it is not tainted. */
  readonly sources: ReadonlyArray<Source>
  readonly label: WorkspaceLabel
  /** What other sessions are told of the workspace. */
  readonly told: WorkspaceLabel
}

/** The answers of an agent, without the messages that only have files. */
const answers = (events: MemoryControlPlane["events"]): number =>
  ofType(events, "AgentMessage").filter(({ payload }) => payload.kind !== "notice").length

/** Each process of these tests has ids of calls of its own: the end of a call looks through all processes for its id. */
const EPOCH = process.pid
const SESSION = SessionId.make("0000000000000000")

/** The workspace at `root`, whose label each session takes over from those before it. `endsAll` is what the runner of commands says of itself. */
export const makeLabelledWorkspace = Effect.fnUntraced(function* (root: string, endsAll = true) {
  const asking = { ...agentConfig(), approvals: { timeout_ms: 60_000, confirm_external: "tainted" as const } }
  const services = yield* toolServices(root, asking)
  const processes = Context.get(services, ProcessRunner)
  // The tests have no pid namespace of their own, and their commands leave no process.
  const command = Effect.provideService(exec, ProcessRunner, { ...processes, endsAll })
  const tools: ReadonlyArray<Tool> = yield* Effect.provideContext(
    Effect.all([command, fsEdit, fsFind(rgPath), fsRead, fsSearch(rgPath), fsSend, fsWrite]),
    services
  )
  const read = testTool("web.read", () => Effect.succeed({ status: "success", summary: "read", sources: [PAGE] }), {
    effect: "none"
  })
  let label: WorkspaceLabel = {}

  const configOf = () => ({ ...asking, workspace_label: label })

  const livedOn = (plane: MemoryControlPlane): Lived => {
    const state = plane.state()
    label = labelOfOrigin(joinedOrigins(originOfLabel(label), state))
    const results = ofType(plane.events, "ToolResultCommitted").map(({ payload }) => payload)
    const told = settledLabel(labelAfter(label, SESSION, state))
    return { results, sources: state.edge.tainted ? state.edge.sources : [], label, told }
  }

  const live = (talks: ReadonlyArray<Talk>): Effect.Effect<Lived> =>
    Effect.gen(function* () {
      const plane = yield* makeMemoryControlPlane
      const script = inOrder(...talks.flatMap(({ wanted }) => [...wanted.map((one) => calls(one)), says("done")]))
      const config = configOf()
      const start = (epoch: number) =>
        Effect.forkScoped(runAgent({ plane, script, tools: [...tools, read], config, epoch: EPOCH + epoch }))
      let agent = yield* start(0)
      for (const [index, { attachments = [], restarts = false }] of talks.entries()) {
        if (restarts) {
          yield* Fiber.interrupt(agent)
          agent = yield* start(index)
        }
        yield* plane.say("go", attachments)
        yield* plane.until((events, state) => quiet(state) && answers(events) === index + 1)
      }
      return livedOn(plane)
    }).pipe(Effect.scoped)

  /** One session whose only job makes these calls, and which is told how it ended. */
  const byJob = (...wanted: ReadonlyArray<Wanted>): Effect.Effect<Lived> =>
    Effect.gen(function* () {
      const plane = yield* makeMemoryControlPlane
      const script = byLane([calls(job("a")), says("started"), says("it ended")], {
        a: [...wanted.map((one) => calls(one)), says("done")]
      })
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [...tools, read], config: configOf(), epoch: EPOCH }))
      yield* plane.say("go")
      yield* plane.until((events, state) => quiet(state) && ofType(events, "CoreStopped").length === 1)
      return livedOn(plane)
    }).pipe(Effect.scoped)

  /** One session whose agent goes down while a call runs, and is started again. */
  const cut = Effect.fnUntraced(
    function* (wanted: Wanted, begun: Effect.Effect<void>) {
      const plane = yield* makeMemoryControlPlane
      const script = inOrder(calls(wanted), says("done"))
      const config = configOf()
      const start = (epoch: number) =>
        Effect.forkScoped(runAgent({ plane, script, tools: [...tools, read], config, epoch: EPOCH + epoch }))
      const agent = yield* start(0)
      yield* plane.say("go")
      yield* begun
      yield* Fiber.interrupt(agent)
      yield* start(1)
      yield* plane.until((events, state) => quiet(state) && answers(events) === 1)
      return livedOn(plane)
    },
    (session) => Effect.scoped(session)
  )

  /** One session whose job makes a call, and whose edge makes another while that one runs: from `begun` on until `end` lets it end. */
  const beside = Effect.fnUntraced(
    function* (ofJob: Wanted, ofEdge: Wanted, { begun, end }: Readonly<Record<"begun" | "end", Effect.Effect<void>>>) {
      const plane = yield* makeMemoryControlPlane
      const script = byLane([calls(job("a")), says("started"), calls(ofEdge), says("read"), says("it ended")], {
        a: [calls(ofJob), says("done")]
      })
      yield* Effect.forkScoped(runAgent({ plane, script, tools: [...tools, read], config: configOf(), epoch: EPOCH }))
      yield* plane.say("go")
      yield* plane.until((events) => answers(events) === 1)
      yield* begun
      yield* plane.say("read")
      yield* plane.until((events) => answers(events) === 2)
      const lived = livedOn(plane)
      yield* end
      yield* plane.until((events, state) => quiet(state) && ofType(events, "CoreStopped").length === 1)
      return lived
    },
    (session) => Effect.scoped(session)
  )

  return {
    beside,
    cut,
    /** One session that is asked once. */
    ask: (...wanted: ReadonlyArray<Wanted>) => live([{ wanted }]),
    byJob,
    live,
    label: () => label
  }
})
