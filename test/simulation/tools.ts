/** The tools of a simulated agent: Choir's own that need no machine, and some of each effect class that write the ledger. */
import { Effect, Schema } from "effect"
import type { LockRequest, ToolEffect } from "#schema/Tool.ts"
import { viewOf } from "#src/agent/model/llmView.ts"
import { decodeInput, lockOn, type PreparedCall, type Tool, type ToolOutcome } from "#src/agent/tools/Tool.ts"
import { sha256 } from "#src/shared/events/hashChain.ts"
import type { AgentIdentity } from "./Agent.ts"
import { OUTSIDE } from "./outsideText.ts"
import type { Seed } from "./Seed.ts"
import type { World } from "./World.ts"

/** A call without arguments is one too, so that a call of whose arguments nothing came looks whole. */
const Input = Schema.Struct({
  path: Schema.optionalKey(Schema.String),
  /** How long it works, in ms. */
  ms: Schema.optionalKey(Schema.Natural.check(Schema.isLessThanOrEqualTo(60_000))),
  /** Told back, so that calls can be made equal or different. */
  note: Schema.optionalKey(Schema.String)
})
type Input = Required<Omit<typeof Input.Type, "note">> & Pick<typeof Input.Type, "note">

/** What the tools of one kind are. */
interface Kind {
  readonly name: string
  readonly effect: ToolEffect
  readonly timeout_ms: number
  readonly locks: (path: string) => ReadonlyArray<readonly [resource: string, mode: LockRequest["mode"]]>
}

const KINDS: ReadonlyArray<Kind> = [
  { name: "sim.look", effect: "none", timeout_ms: 8000, locks: (path) => [[path, "S"]] },
  { name: "sim.edit", effect: "workspace", timeout_ms: 8000, locks: (path) => [[path, "X"]] },
  { name: "sim.sweep", effect: "workspace", timeout_ms: 12_000, locks: () => [[".", "X"]] },
  {
    name: "sim.move",
    effect: "workspace",
    timeout_ms: 8000,
    locks: (path) => [
      [path, "X"],
      ["to", "X"]
    ]
  },
  { name: "sim.send", effect: "external", timeout_ms: 20_000, locks: () => [] },
  { name: "sim.post", effect: "external", timeout_ms: 20_000, locks: (path) => [[path, "S"]] }
]

/** How long a call of a tool may take, in ms. */
export const timeoutOf = (tool: string): number | undefined => KINDS.find(({ name }) => name === tool)?.timeout_ms

/** How a run ends. */
const FATES = ["fails", "breaks", "hangs", "untrusted"] as const

const outcome = (kind: Kind, { note, path }: Input, fate: (typeof FATES)[number] | "works"): ToolOutcome => {
  const version = { path, sha256: sha256(note ?? "") }
  return {
    status: fate === "fails" ? "error" : "success",
    summary: `${kind.name} ${path}`,
    output: { path, note: note ?? "", ...(fate === "untrusted" ? { page: OUTSIDE } : {}) },
    ...(fate === "untrusted" ? { untrusted: true } : {}),
    ...(kind.effect === "none" ? { reads: [version] } : {}),
    ...(kind.effect === "workspace" ? { writes: [{ path, after: version.sha256 }] } : {})
  }
}

const run = (
  world: World,
  agent: AgentIdentity,
  draw: Seed,
  kind: Kind,
  input: Input,
  locks: ReadonlyArray<LockRequest>
) => {
  const { faults, kernel, ledger, setup } = world
  const start: PreparedCall["run"] = ({ call_id, lane }) =>
    Effect.suspend(() => {
      const isFromOutside = setup.outside && draw.chance(0.2)
      const fate = isFromOutside
        ? "untrusted"
        : faults.active("tools") && draw.chance(faults.rates.tools)
          ? draw.pick(FATES)
          : "works"
      const { effect, name, timeout_ms } = kind
      const { epoch, number, session_id } = agent
      const entry = {
        agent: number,
        epoch,
        session_id,
        lane,
        call_id,
        tool: name,
        effect,
        locks,
        happened_at: undefined
      }
      const happen = Effect.sync(() => ledger.effect(entry, kernel.now))
      // A tool that hangs does so beyond its timeout, whatever else ends.
      const work = Effect.sleep(fate === "hangs" && !faults.calm ? timeout_ms * 2 : input.ms / 2)
      const end =
        fate === "breaks" ? Effect.die(new Error("a simulated defect")) : Effect.succeed(outcome(kind, input, fate))
      return Effect.sync(() => ledger.start(entry)).pipe(
        Effect.andThen(work),
        Effect.andThen(happen),
        Effect.andThen(Effect.sleep(input.ms / 2)),
        Effect.andThen(end),
        Effect.ensuring(Effect.sync(() => ledger.stop(entry)))
      )
    })
  return start
}

/** The tools of one start of an agent. */
export const simTools = (world: World, agent: AgentIdentity): ReadonlyArray<Tool> => {
  const draw = world.draw(`tools ${agent.number}`)
  const decode = decodeInput(Input)
  return KINDS.map((kind): Tool => ({
    llm: viewOf(kind.name, `A simulated tool: ${kind.effect}.`, Input),
    effect: kind.effect,
    lanes: "both",
    prepare: Effect.fnUntraced(function* (raw) {
      const input = { path: "a", ms: 100, ...(yield* decode(raw)) }
      const locks = yield* Effect.forEach(kind.locks(input.path), ([path, mode]) => lockOn(path, mode))
      return { locks, timeout_ms: kind.timeout_ms, run: run(world, agent, draw, kind, input, locks) }
    })
  }))
}
