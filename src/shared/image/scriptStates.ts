/**
 * The state machine of a skill that the runtime runs: each step of its workflow is a state, then each call of its verification, and the skill
 * ends at the first one that fails. Its file has no states of its own.
 */
import { ERROR_EVENT, type SkillSpec } from "#schema/Skill.ts"
import type { SkillRegistryEntry, Verification, VerificationCall, WorkflowStep } from "#schema/SkillRegistryEntry.ts"

/** The word with which a script leaves a state. */
export const SCRIPT_EVENT = "complete"

/** Whether the runtime does the work of a skill, so that no model is called for it. */
export const isScript = ({ contract }: SkillSpec): boolean =>
  contract !== undefined && contract.execution_class !== "probabilistic"

export const isVerificationCall = (check: Verification): check is VerificationCall => "tool" in check

/** The call of a script's state. */
export type ScriptCall = ({ readonly type: "step" } & WorkflowStep) | ({ readonly type: "verify" } & VerificationCall)

type Calls = ReadonlyArray<readonly [state: string, call: ScriptCall]>

const callsOf = ({ verification, workflow }: Pick<SkillRegistryEntry, "verification" | "workflow">): Calls => [
  ...workflow.map((step, index) => [`step${index + 1}`, { type: "step", ...step }] as const),
  ...verification
    .filter(isVerificationCall)
    .map((check, index) => [`verify${index + 1}`, { type: "verify", ...check }] as const)
]

/** The call of a state of a script; `undefined` in the states of a model's skill. */
export const scriptCall = (spec: SkillSpec, state: string): ScriptCall | undefined =>
  spec.registry === undefined || !isScript(spec)
    ? undefined
    : callsOf(spec.registry).find(([name]) => name === state)?.[1]

type Machine = Pick<SkillSpec, "initial_state" | "max_steps" | "states">

/** A state takes two outputs: its call, and the transition that takes over the result. */
export const scriptMachine = (entry: Pick<SkillRegistryEntry, "verification" | "workflow">): Machine => {
  const calls = callsOf(entry)
  const states = calls.map(([name, call], index) => {
    const next = calls[index + 1]?.[0] ?? "done"
    return [
      name,
      {
        objective: call.type === "step" ? call.step : `Verify with ${call.tool}.`,
        allowed_tools: [call.tool],
        transitions: [
          { on: SCRIPT_EVENT, to: next },
          { on: ERROR_EVENT, to: "failed" }
        ],
        terminal: false
      }
    ] as const
  })
  const end = { allowed_tools: [], transitions: [], terminal: true }
  return {
    initial_state: calls[0]?.[0] ?? "done",
    max_steps: Math.max(1, 2 * calls.length),
    states: Object.fromEntries<SkillSpec["states"][string]>([...states, ["done", end], ["failed", end]])
  }
}
