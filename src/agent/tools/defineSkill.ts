/**
 * Skills of programs that embed Choir: an Effect program behind a contract, run by the runtime without a model. What it may read and write, and what
 * its result has to hold, is checked as for every other skill; skills of an image never load code.
 */
import { Effect, Result, Schema } from "effect"
import type { SkillSpec } from "#schema/Skill.ts"
import type { SkillContract } from "#schema/SkillContract.ts"
import type { SkillRegistryEntry } from "#schema/SkillRegistryEntry.ts"
import type { LockRequest, ToolEffect } from "#schema/Tool.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import type { StateValues } from "#src/shared/image/statePath.ts"
import { viewOf } from "#src/agent/model/llmView.ts"
import { decodeInput, refusal, type Tool } from "./Tool.ts"

/** A definition that cannot hold, with each of its problems. */
export class SkillInvalid extends Schema.TaggedError<SkillInvalid>()("SkillInvalid", {
  name: Schema.String,
  problems: Schema.Array(Schema.String)
}) {
  override get message() {
    return `the skill ${this.name} cannot be defined: ${this.problems.join("; ")}`
  }
}

/** The result of a run: new values of fields in `state_write`, and a line for people. */
export interface SkillRun {
  readonly writes: StateValues
  readonly summary: string
}

export interface SkillDefinition<E, R> {
  readonly name: string
  readonly description: string
  readonly contract: Omit<typeof SkillContract.Encoded, "execution_class">
  readonly registry: Pick<typeof SkillRegistryEntry.Encoded, "tier" | "triggers" | "version">
  /** The effect of a run: none where absent. One that acts outside is behind the intent barrier and runs at most once. */
  readonly effect?: ToolEffect
  readonly locks?: ReadonlyArray<LockRequest>
  readonly timeout_ms?: number
  /** Gets the fields of `state_read`, all of which need a value. A failure ends the skill as failed, with its message. */
  readonly run: (state: StateValues) => Effect.Effect<SkillRun, E, R>
}

/** A skill for the SkillRegistry, and the tool for the ToolRegistry that runs its program. No model sees or may call the tool. */
export interface DefinedSkill {
  readonly spec: SkillSpec
  readonly tool: Tool
}

const RUN_MS_MAX = 60_000
const State = Schema.Record(Schema.String, Schema.Json)

/** A tool's name has no hyphens, and a skill's may have them. */
const toolName = (name: string): string =>
  `program.s_${name.toLowerCase().replaceAll(/[^a-z0-9_]/gu, "_")}`.slice(0, 64)

/** Defines a skill of the class `deterministic`. Its program gets the services of the caller. */
export const defineSkill = Effect.fnUntraced(function* <E extends { readonly message: string }, R>(
  definition: SkillDefinition<E, R>
): Effect.fn.Return<DefinedSkill, SkillInvalid, R> {
  const { contract, description, effect = "none", locks = [], name, registry, timeout_ms = RUN_MS_MAX } = definition
  const services = yield* Effect.context<R>()
  const tool = toolName(name)
  const text = JSON.stringify({
    name,
    description,
    contract: { ...contract, execution_class: "deterministic" },
    registry: {
      ...registry,
      workflow: [
        {
          step: contract.does,
          tool,
          params: Object.fromEntries((contract.state_read ?? []).map((field) => [field, `\${${field}}`])),
          writes: Object.fromEntries((contract.state_write ?? []).map((field) => [field, field]))
        }
      ]
    }
  })
  const read = readSkill(name, text)
  if (Result.isFailure(read)) return yield* new SkillInvalid({ name, problems: read.failure })
  const decode = decodeInput(State)
  const run = (state: StateValues) =>
    definition.run(state).pipe(
      Effect.map(({ summary, writes }) => ({ status: "success", summary, output: writes }) as const),
      Effect.catch((error: E) => Effect.succeed(refusal(error))),
      Effect.provide(services)
    )
  return {
    spec: read.success,
    tool: {
      llm: viewOf(tool, contract.does, State),
      effect,
      lanes: "both",
      capabilities: read.success.contract?.capabilities ?? [],
      ofScripts: true,
      prepare: (input) => Effect.map(decode(input), (state) => ({ locks, timeout_ms, run: () => run(state) }))
    }
  }
})
