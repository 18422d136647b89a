/** Skills that an operator tries: from start to end, without an agent and without an effect outside. */
import { Context, Effect, FileSystem, Layer, Result, type Schema } from "effect"
import type { TriedSkill } from "#schema/ContainedTrial.ts"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { AgentId, ResourceName, SecretName } from "#schema/Ids.ts"
import type { SkillName, SkillSpec } from "#schema/Skill.ts"
import type { SkillFile } from "#schema/SkillOffer.ts"
import { fromWireName } from "#schema/Tool.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { withOfflineAddress } from "#src/choird/config/offlineAddress.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { imageSkills } from "#src/choird/images/ImageFolder.ts"
import { secretProblem, toolManifests } from "#src/choird/images/imageSecrets.ts"
import { trialConfig } from "#src/choird/trials/Rehearsals.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { allSkillProblems } from "#src/shared/image/skillFile.ts"
import { secretsOfTool, TOOL_NEEDS } from "#src/shared/image/toolNeeds.ts"
import { toolSecret } from "#src/shared/image/toolSecret.ts"
import { nearestWord } from "#src/shared/text/nearestWord.ts"
import { makeTrialAgent, type TrialAgent, trialFailed } from "./trialAgent.ts"
import { TrialContainers, type TrialFile } from "./TrialContainers.ts"
import { TrialRefused } from "./TrialRefused.ts"

export interface SkillTrial {
  /** The agent whose image, models and accounts it is tried with. */
  readonly agent_id: AgentId
  /** A skill of the agent's image, or one that is in no image yet. */
  readonly skill: SkillName | SkillSpec
  readonly input?: Schema.Json
  /** The model that does the work, instead of the agent's own for jobs. */
  readonly model?: ResourceName
  /** Files that the workspace of the trial begins with. */
  readonly files: ReadonlyArray<TrialFile>
  /** The other files of a written skill's folder. */
  readonly references?: ReadonlyArray<SkillFile>
}

/** Runs a skill from start to end, as an agent would, but outside of every session. */
export class SkillTrials extends Context.Service<
  SkillTrials,
  {
    /** Runs a skill in a workspace of its own, for at most `skills.rehearsal.max_cost_usd`. */
    run(trial: SkillTrial): Effect.Effect<TriedSkill, TrialRefused>
  }
>()("choir/choird/SkillTrials") {
  static readonly layer = Layer.effect(
    SkillTrials,
    Effect.suspend(() => make)
  )
}

const isScript = ({ contract }: SkillSpec): boolean =>
  contract !== undefined && contract.execution_class !== "probabilistic"

/** The secrets that its models and its tools need. */
const secretsNeeded = (spec: SkillSpec, { image }: TrialAgent, share: AgentConfig): ReadonlyArray<SecretName> => {
  const models = isScript(spec) ? [] : Object.values(share.models).flatMap(({ secret }) => secret ?? [])
  const manifests = toolManifests(image.path)
  const tools = new Set(
    Object.values(spec.states)
      .flatMap(({ allowed_tools }) => allowed_tools)
      .map((name) => fromWireName(name) ?? name)
  )
  // Commands of a trial have no network, so that credentials of git would be of no use.
  const needed = (name: string) => (TOOL_NEEDS.get(name)?.required === true ? secretsOfTool(name, share) : [])
  const ofTools = [...tools].flatMap(
    (name) => manifests.findLast(({ llm }) => llm.name === name)?.runtime.secret_resources ?? needed(name)
  )
  return [...new Set([...models, ...ofTools])]
}

/** A trial asks nobody: a command runs without a network, and what would act outside is held back. */
const within = (share: AgentConfig, max_cost_usd: number): AgentConfig => {
  const config = trialConfig(share, max_cost_usd)
  return { ...config, approvals: { ...config.approvals, confirm_external: "tainted" } }
}

/** The skill that is tried: the one that was written, or the agent's of that name. */
const specOf = Effect.fnUntraced(function* ({ agent_id, skill }: SkillTrial, { image }: TrialAgent) {
  if (typeof skill !== "string") {
    const problems = allSkillProblems(skill)
    return problems.length === 0
      ? skill
      : yield* new TrialRefused({ kind: "NOT_READY", reason: `the skill cannot run: ${problems.join("; ")}` })
  }
  const own = yield* Effect.mapError(
    imageSkills(image.path),
    ({ message }) => new TrialRefused({ kind: "NO_IMAGE", reason: message, hint: `choirctl agent build ${agent_id}` })
  )
  const all = [...own, ...BUILT_IN_SKILLS]
  const spec = all.find(({ name }) => name === skill)
  if (spec !== undefined) return spec
  const near = nearestWord(
    skill,
    all.map(({ name }) => name)
  )
  return yield* new TrialRefused({
    kind: "UNKNOWN_SKILL",
    reason: `${agent_id} has no skill ${skill}${near === undefined ? "" : `; did you mean ${near}?`}`,
    hint: `choirctl skill list ${agent_id}, or name a file or a folder`
  })
})

/** The agent's share, with another model for its jobs where one is asked for. */
const shareOf = Effect.fnUntraced(function* (
  { agent_id, model }: SkillTrial,
  { bindings, running, share }: TrialAgent
) {
  if (model === undefined) return { bindings, share }
  if (!Object.hasOwn(running.models, model)) {
    const near = nearestWord(model, Object.keys(running.models))
    return yield* new TrialRefused({
      kind: "UNKNOWN_MODEL",
      reason: `config.json has no model ${model}${near === undefined ? "" : `; did you mean ${near}?`}`,
      hint: "choirctl model list"
    })
  }
  const other = { ...bindings, core_llm: model }
  return { bindings: other, share: yield* withOfflineAddress(agentConfig(running, other, agent_id)) }
})

const make = Effect.gen(function* () {
  const config = yield* ConfigStore
  const containers = yield* TrialContainers
  const fs = yield* FileSystem.FileSystem
  const find = yield* makeTrialAgent

  const run = Effect.fn("SkillTrials.run")(function* (trial: SkillTrial) {
    const { agent_id, files, input, references = [] } = trial
    const agent = yield* find(agent_id)
    const spec = yield* Effect.provideService(specOf(trial, agent), FileSystem.FileSystem, fs)
    const { bindings, share } = yield* shareOf(trial, agent)
    const names = secretsNeeded(spec, agent, share)
    const problemOf = secretProblem(agent.running, yield* config.secrets, agent_id, bindings)
    const problem = names.map(problemOf).find((found) => found !== undefined)
    if (problem !== undefined) return yield* new TrialRefused({ kind: "NOT_READY", reason: problem })
    const behind = names.flatMap((name) =>
      Result.getOrElse(
        Result.map(toolSecret(name, share), (one) => [one]),
        () => []
      )
    )
    const task = {
      type: "skill" as const,
      agent_id,
      config: within(share, agent.running.skills.rehearsal.max_cost_usd),
      secrets: Object.fromEntries(yield* config.secretValues(behind)),
      skills: [spec],
      skill: spec.name,
      ...(references.length === 0 ? {} : { references }),
      ...(input === undefined ? {} : { input })
    }
    const outcome = yield* Effect.mapError(
      containers.run({ agent_id, image: agent.image, files, task: (session_id) => ({ ...task, session_id }) }),
      trialFailed
    )
    if (outcome.type === "tried_skill") return outcome.tried
    return yield* new TrialRefused({
      kind: "TRIAL_FAILED",
      reason: "the trial's container sent a reply that does not match the request"
    })
  })

  return SkillTrials.of({ run })
})
