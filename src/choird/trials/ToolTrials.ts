/** Tools that an operator tries: one call each, outside of every session, so that a new key or account is checked by one command. */
import { Context, Effect, Layer, Result, type Schema } from "effect"
import type { TriedTool } from "#schema/ContainedTrial.ts"
import type { AgentId, SecretName } from "#schema/Ids.ts"
import { BINDINGS } from "#schema/Resources.ts"
import { ToolName, type ToolManifest } from "#schema/Tool.ts"
import { exclusive, Leases } from "#src/choird/agents/Leases.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import type { DatabaseAway } from "#src/choird/database/DatabaseAway.ts"
import { secretProblem, toolManifests } from "#src/choird/images/imageSecrets.ts"
import { secretsOfTool, TOOL_NEEDS } from "#src/shared/image/toolNeeds.ts"
import { toolSecret } from "#src/shared/image/toolSecret.ts"
import { makeTrialAgent, type TrialAgent, trialFailed } from "./trialAgent.ts"
import { toolRefusal } from "./toolOffer.ts"
import { TrialContainers } from "./TrialContainers.ts"
import { TrialRefused } from "./TrialRefused.ts"

export interface ToolTrial {
  readonly agent_id: AgentId
  /** As the operator wrote it, in either spelling. */
  readonly tool: string
  readonly input: Schema.Json
  /** The operator agreed that it acts outside. */
  readonly confirmed: boolean
  /** Runs when nothing speaks against the call, before its container starts: from then on it may act. */
  readonly begins: Effect.Effect<void>
}

/** Calls a tool once, as an agent would, but outside of every session. */
export class ToolTrials extends Context.Service<
  ToolTrials,
  {
    /** Makes the call; one that acts outside without `confirmed` is not made, and says why it asks. */
    run(trial: ToolTrial): Effect.Effect<TriedTool, TrialRefused | DatabaseAway>
  }
>()("choir/choird/ToolTrials") {
  static readonly layer = Layer.effect(
    ToolTrials,
    Effect.suspend(() => make)
  )
}

/** The account that a built-in tool uses, if one agent alone may hold it. */
const leaseOf = (name: string, { agent_id, bindings, running }: TrialAgent) => {
  const binding = TOOL_NEEDS.get(name)?.binding
  return exclusive(running, agent_id, bindings).flatMap(({ kind, name }) =>
    kind === binding ? [{ kind: binding, name }] : []
  )[0]
}

const namesOf = (tool: string, manifest: ToolManifest | undefined, { share }: TrialAgent): ReadonlyArray<SecretName> =>
  manifest === undefined ? secretsOfTool(tool, share) : manifest.runtime.secret_resources

/** The values that the call is given, and no others. */
const secretsOf = Effect.fnUntraced(function* (agent: TrialAgent, names: ReadonlyArray<SecretName>) {
  const config = yield* ConfigStore
  const problemOf = secretProblem(agent.running, yield* config.secrets, agent.agent_id, agent.bindings)
  const problem = names.map(problemOf).find((found) => found !== undefined)
  if (problem !== undefined) {
    const [reason = problem, hint] = problem.split(/: (?=choirctl )/u)
    return yield* new TrialRefused({ kind: "NOT_READY", reason, ...(hint === undefined ? {} : { hint }) })
  }
  const behind = names.flatMap((name) =>
    Result.getOrElse(
      Result.map(toolSecret(name, agent.share), (one) => [one]),
      () => []
    )
  )
  return Object.fromEntries(yield* config.secretValues(behind))
})

/** Fails if another agent holds the account that the tool uses. */
const requireLease = Effect.fnUntraced(function* (agent: TrialAgent, tool: string) {
  const leases = yield* Leases
  const wanted = leaseOf(tool, agent)
  if (wanted === undefined) return
  const { kind, name } = wanted
  const held = (yield* leases.all).find(
    (row) => row.kind === kind && row.name === name && row.agent_id !== agent.agent_id
  )
  if (held === undefined) return
  return yield* new TrialRefused({
    kind: "NOT_READY",
    reason: `the ${BINDINGS[kind].label} "${name}" is leased by the agent "${held.agent_id}"`,
    hint: `choirctl tool try ${tool} --agent ${held.agent_id}`
  })
})

const make = Effect.gen(function* () {
  const containers = yield* TrialContainers
  const context = Context.pick(ConfigStore, Leases)(yield* Effect.context<ConfigStore | Leases>())
  const find = yield* makeTrialAgent

  const run = Effect.fn("ToolTrials.run")(function* ({ agent_id, begins, confirmed, input, tool: written }: ToolTrial) {
    const agent = yield* find(agent_id)
    const { image, running, share } = agent
    const name = written.replaceAll("-", ".")
    const manifests = toolManifests(image.path)
    const refused = toolRefusal(
      name,
      manifests.map(({ llm }) => llm.name),
      agent_id,
      running.agents[agent_id],
      share
    )
    if (refused !== undefined) return yield* refused
    // An agent's own tool comes after the global one that it replaces.
    const manifest = manifests.findLast(({ llm }) => llm.name === name)
    yield* requireLease(agent, name)
    const secrets = yield* secretsOf(agent, namesOf(name, manifest, agent))
    const tool = ToolName.make(name)
    const task = { type: "tool" as const, agent_id, config: share, secrets, input, tool, confirmed }
    yield* begins
    const outcome = yield* Effect.mapError(
      containers.run({ agent_id, image, files: [], task: (session_id) => ({ ...task, session_id }) }),
      trialFailed
    )
    if (outcome.type === "tried_tool") return outcome.tried
    return yield* new TrialRefused({
      kind: "TRIAL_FAILED",
      reason: "the trial's container sent a reply that does not match the request"
    })
  }, Effect.provideContext(context))

  return ToolTrials.of({ run })
})
