/**
 * The problems of a skill's contract that its schema cannot say: scopes that name no field, a script that reaches beyond them, tools that can do more
 * than is declared.
 */
import type { Schema } from "effect"
import { type SkillSpec, skillState } from "#schema/Skill.ts"
import type { Assertion, SkillContract } from "#schema/SkillContract.ts"
import type { SkillRegistryEntry } from "#schema/SkillRegistryEntry.ts"
import type { ToolCapabilities } from "./builtInTools.ts"
import { schemaProblem } from "./jsonSchema.ts"
import { isScript, isVerificationCall } from "./scriptStates.ts"
import { fieldOf, placesIn } from "./statePath.ts"

/** Every tool that a skill can call. */
export const toolsOf = ({ registry, states }: SkillSpec): ReadonlyArray<string> => {
  const own = Object.keys(states).flatMap((name) => states[name]?.allowed_tools ?? [])
  const checks = (registry?.verification ?? []).flatMap((check) => (isVerificationCall(check) ? [check.tool] : []))
  return [...new Set([...own, ...(registry?.workflow ?? []).map(({ tool }) => tool), ...checks])]
}

const AT = `at ["contract"]`

/** Names of a scope that another one lacks. */
const beyond = (
  at: string,
  scope: ReadonlyArray<string>,
  within: ReadonlyArray<string>,
  what: string
): ReadonlyArray<string> =>
  scope.flatMap((field, index) => (within.includes(field) ? [] : [`${at}[${index}]: ${field} is not in ${what}`]))

const assertionProblems = (
  at: string,
  assertions: ReadonlyArray<Assertion>,
  scope: ReadonlyArray<string>
): ReadonlyArray<string> =>
  assertions.flatMap(({ path }, index) =>
    scope.includes(fieldOf(path))
      ? []
      : [`${at}[${index}]["path"]: the skill neither reads nor writes the field ${fieldOf(path)}`]
  )

const scopeProblems = (spec: SkillSpec, contract: SkillContract): ReadonlyArray<string> => {
  const { assertions, judge, state, state_read, state_write } = contract
  const fields = Object.keys(state)
  const own = [...state_read, ...state_write]
  const declared = "the contract's state"
  return [
    ...beyond(`${AT}["state_read"]`, state_read, fields, declared),
    ...beyond(`${AT}["state_write"]`, state_write, fields, declared),
    ...beyond(`${AT}["judge"]["sources"]`, judge?.sources ?? [], own, "the skill's scopes"),
    ...assertionProblems(`${AT}["assertions"]`, assertions, own),
    ...fields.flatMap((field) => {
      const schema = state[field]?.schema
      const problem = schema === undefined || typeof schema === "string" ? undefined : schemaProblem(schema)
      return problem === undefined ? [] : [`${AT}["state"]["${field}"]["schema"]: it cannot be checked: ${problem}`]
    }),
    ...Object.keys(spec.states).flatMap((name) => {
      const at = `at ["states"]["${name}"]`
      const narrowed = skillState(spec, name)
      return [
        ...beyond(`${at}["state_read"]`, narrowed?.state_read ?? [], state_read, "the contract's state_read"),
        ...beyond(`${at}["state_write"]`, narrowed?.state_write ?? [], state_write, "the contract's state_write"),
        ...assertionProblems(`${at}["assertions"]`, narrowed?.assertions ?? [], own)
      ]
    })
  ]
}

const paramProblems = (
  at: string,
  params: Readonly<Record<string, Schema.Json>>,
  { state_read }: SkillContract
): ReadonlyArray<string> =>
  placesIn(params).flatMap((place) => {
    if (place.path === undefined)
      return [`${at}: ${place.text} names no place in STATE: write \${field} or \${field.key}`]
    const field = fieldOf(place.path)
    return state_read.includes(field) ? [] : [`${at}: the skill does not read the field ${field}: add it to state_read`]
  })

const scriptProblems = (contract: SkillContract, entry: SkillRegistryEntry | undefined): ReadonlyArray<string> => {
  const { execution_class, state_write } = contract
  const workflow = entry?.workflow ?? []
  const at = `at ["registry"]["workflow"]`
  if (workflow.length === 0)
    return [`${at}: a skill of the class ${execution_class} is run by its workflow: add the calls that it makes`]
  return [
    ...(execution_class === "tool" && workflow.length > 1
      ? [`${at}: a skill of the class tool makes one call: use the class deterministic for more`]
      : []),
    ...workflow.flatMap(({ params, writes }, index) => [
      ...paramProblems(`${at}[${index}]["params"]`, params, contract),
      ...Object.keys(writes).flatMap((field) =>
        state_write.includes(field)
          ? []
          : [`${at}[${index}]["writes"]: the skill does not write the field ${field}: add it to state_write`]
      )
    ])
  ]
}

const verificationProblems = (spec: SkillSpec, contract: SkillContract): ReadonlyArray<string> =>
  (spec.registry?.verification ?? []).flatMap((check, index) => {
    const list = `at ["registry"]["verification"]`
    const at = `${list}[${index}]`
    if (isVerificationCall(check))
      return isScript(spec)
        ? paramProblems(`${at}["params"]`, check.params, contract)
        : [`${at}: only the runtime makes this call: use the class deterministic, or write an assertion`]
    const scope = [...contract.state_read, ...contract.state_write]
    return scope.includes(fieldOf(check.path))
      ? []
      : [`${at}["path"]: the skill neither reads nor writes the field ${fieldOf(check.path)}`]
  })

const capabilityProblems = (
  spec: SkillSpec,
  { capabilities }: SkillContract,
  tools: ToolCapabilities
): ReadonlyArray<string> =>
  toolsOf(spec).flatMap((tool) => {
    const missing = (tools.get(tool) ?? []).filter((capability) => !capabilities.includes(capability))
    return missing.length === 0
      ? []
      : [`${AT}["capabilities"]: ${tool} needs ${missing.join(", ")}: declare it, or do without the tool`]
  })

/** A registry entry without a contract has no STATE that a workflow could read. */
const withoutContract = (spec: SkillSpec): ReadonlyArray<string> => [
  ...Object.keys(spec.states).flatMap((name) => {
    const state = skillState(spec, name)
    const keys = (["state_read", "state_write", "assertions"] as const).filter((key) => state?.[key] !== undefined)
    return keys.map((key) => `at ["states"]["${name}"]["${key}"]: it needs a contract, which declares the STATE`)
  }),
  ...((spec.registry?.workflow.length ?? 0) + (spec.registry?.verification.length ?? 0) > 0
    ? [`at ["registry"]: a workflow or a verification needs a contract, which declares the STATE`]
    : [])
]

/** `tools` are all tools that there are, where they are known. */
export const contractProblems = (spec: SkillSpec, tools?: ToolCapabilities): ReadonlyArray<string> => {
  const { contract, registry } = spec
  const required = (registry?.required_tools ?? []).flatMap((tool, index) =>
    tools === undefined || tools.has(tool)
      ? []
      : [`at ["registry"]["required_tools"][${index}]: there is no tool ${tool}`]
  )
  if (contract === undefined) return [...withoutContract(spec), ...required]
  return [
    ...scopeProblems(spec, contract),
    ...(isScript(spec)
      ? scriptProblems(contract, registry)
      : (registry?.workflow.length ?? 0) > 0
        ? [`at ["registry"]["workflow"]: the runtime runs a workflow: use the class deterministic, or write states`]
        : []),
    ...verificationProblems(spec, contract),
    ...required,
    ...(tools === undefined ? [] : capabilityProblems(spec, contract, tools))
  ]
}
