/** The STATE of a running skill: which fields a step may read and write, and what they hold. Values are in the events that wrote them. */
import type { Schema } from "effect"
import { type SkillSpec, skillState } from "#schema/Skill.ts"
import { schemaOf } from "#schema/SkillContract.ts"
import { valueProblem } from "#src/shared/image/jsonSchema.ts"
import type { StateValues } from "#src/shared/image/statePath.ts"
import type { ActiveSkill } from "#src/shared/session/State.ts"
import type { Find } from "./Command.ts"

/** Bytes of one field's value, and of all of them together, as JSON. */
const FIELD_BYTES_MAX = 64 * 1024
const SKILL_STATE_BYTES_MAX = 192 * 1024

/** The fields that a step may read and write. A skill without a contract has no scopes. */
export interface Scopes {
  readonly read: ReadonlyArray<string>
  readonly write: ReadonlyArray<string>
}

export const scopesOf = (spec: SkillSpec, state: string): Scopes | undefined => {
  if (spec.contract === undefined) return undefined
  const narrowed = skillState(spec, state)
  return {
    read: narrowed?.state_read ?? spec.contract.state_read,
    write: narrowed?.state_write ?? spec.contract.state_write
  }
}

/** The value of a field, by the event that holds it: what was written, or for a skill without a contract what a state came to. */
const fieldValue = ({ name, rev }: ActiveSkill["fields"][number], find: Find): Schema.Json => {
  const event = find(rev)
  if (event?.event_type !== "SkillTransitionCommitted") return null
  const { output = null, writes } = event.payload
  return writes !== undefined && Object.hasOwn(writes, name) ? (writes[name] ?? null) : output
}

/** The fields that have a value, or those of a scope. */
export const stateValues = ({ fields }: ActiveSkill, find: Find, scope?: ReadonlyArray<string>): StateValues =>
  Object.fromEntries(
    fields.filter(({ name }) => scope?.includes(name) ?? true).map((field) => [field.name, fieldValue(field, find)])
  )

const bytesOf = (value: Schema.Json): number => Buffer.byteLength(JSON.stringify(value))

/** Why fields cannot take these values: each against its schema and its size, and all of STATE together. */
export const valuesProblem = (
  { contract }: SkillSpec,
  values: StateValues,
  before: StateValues = {}
): string | undefined => {
  const declared = contract?.state ?? {}
  for (const [name, value] of Object.entries(values)) {
    const field = Object.hasOwn(declared, name) ? declared[name] : undefined
    if (field === undefined)
      return `STATE has no field ${name.slice(0, 64)}; it has ${Object.keys(declared).join(", ") || "none"}`
    if (bytesOf(value) > FIELD_BYTES_MAX) return `the field ${name} may have ${FIELD_BYTES_MAX} bytes at most`
    const problem = valueProblem(schemaOf(field.schema), value)
    if (problem !== undefined) return `the field ${name} does not fit its schema: ${problem}`
  }
  return bytesOf({ ...before, ...values }) > SKILL_STATE_BYTES_MAX
    ? `all fields of STATE together may have ${SKILL_STATE_BYTES_MAX} bytes at most`
    : undefined
}

/** Why a step may not write these fields. */
export const writesProblem = (
  spec: SkillSpec,
  { write }: Scopes,
  writes: StateValues,
  before: StateValues
): string | undefined => {
  const beyond = Object.keys(writes).filter((name) => !write.includes(name))
  return beyond.length > 0
    ? `this step may not write ${beyond
        .slice(0, 8)
        .map((name) => name.slice(0, 64))
        .join(", ")}; it may write ${write.join(", ") || "nothing"}`
    : valuesProblem(spec, writes, before)
}
