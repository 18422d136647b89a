/**
 * The one reader of skills and of what belongs to them: `skills/<name>.json`, `skills/<name>/SKILL.md` and `profiles/<type>.json`. The build of an
 * image, the agent, the check of a configuration, a proposal and `choirctl skill check` all use it.
 */
import { Result, Schema } from "effect"
import { JobProfile } from "#schema/JobProfile.ts"
import { SkillSpec } from "#schema/Skill.ts"
import { SkillRegistryEntry } from "#schema/SkillRegistryEntry.ts"
import { canonicalJson } from "#src/shared/text/canonicalJson.ts"
import { syntaxProblem } from "#src/shared/text/jsonSyntax.ts"
import { BUILT_IN_SKILLS } from "./builtInSkills.ts"
import { decodeBounded } from "./boundedJson.ts"
import type { ToolCapabilities } from "./builtInTools.ts"
import { contractProblems } from "./contractProblems.ts"
import { type PinnedSchemas, pinProblems, withPinned } from "./pinnedSchemas.ts"
import { isScript, scriptMachine } from "./scriptStates.ts"
import { readSkillFolder, SKILL_FILE } from "./skillFolder.ts"
import { skillProblems, statesProblem } from "./skillProblems.ts"
import { scheduleProblems } from "./skillSchedule.ts"
import { MANIFEST_BYTES_MAX } from "./toolManifest.ts"

/** Where an image has the schemas and the profiles. No skill can have the name of such a folder. */
export const SCHEMAS_FOLDER = "skills/_schemas"
export const PROFILES_FOLDER = "skills/_profiles"

/** Other files that a skill names, as far as they are known. */
export interface SkillSources {
  /** All tools that there are. */
  readonly tools?: ToolCapabilities
  /** All schemas that can be pinned. */
  readonly schemas?: PinnedSchemas
}

/** All problems of a skill whose shape is right. */
export const allSkillProblems = (spec: SkillSpec, tools?: ToolCapabilities): ReadonlyArray<string> => [
  ...skillProblems(spec, tools),
  ...contractProblems(spec, tools),
  ...scheduleProblems(spec)
]

/** The value of a text, or where it stops being JSON. */
const parse = (text: string): Result.Result<unknown, { readonly message: string }> =>
  Result.try({ try: (): unknown => JSON.parse(text), catch: () => ({ message: syntaxProblem(text) }) })

/** The value of a skill's text, where it has no more states than a skill may have. */
const decodeText = (text: string): Result.Result<unknown, { readonly message: string }> =>
  Result.flatMap(parse(text), (value) => {
    const message = isObject(value) && isObject(value["states"]) ? statesProblem(value["states"]) : undefined
    return message === undefined ? Result.succeed(value) : Result.fail({ message })
  })
const decode = decodeBounded(SkillSpec)
const decodeEntry = Schema.decodeUnknownResult(SkillRegistryEntry)

const plain = ({ message }: { readonly message: string }) => message.replaceAll(/\s+/gu, " ").trim()

type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** The file of a script with the states that follow from its workflow, which it leaves out. */
const withMachine = (value: unknown): unknown => {
  if (!isObject(value) || !isObject(value["contract"])) return value
  const { execution_class } = value["contract"]
  if ((execution_class !== "deterministic" && execution_class !== "tool") || Object.hasOwn(value, "states"))
    return value
  const entry = decodeEntry(value["registry"])
  return { ...value, ...scriptMachine(Result.isSuccess(entry) ? entry.success : { verification: [], workflow: [] }) }
}

/** The states of a script are made, so that nothing in them can differ from what it calls. */
const machineProblems = (spec: SkillSpec): ReadonlyArray<string> => {
  if (!isScript(spec) || spec.registry === undefined) return []
  const { initial_state, max_steps, states } = spec
  const own = canonicalJson({ initial_state, max_steps, states })
  return own === canonicalJson(scriptMachine(spec.registry))
    ? []
    : [`at ["states"]: the runtime makes them from the workflow: leave initial_state, states and max_steps out`]
}

/** The skill of a file's text, or what is wrong with it. `stem` is the file's name without `.json`, which is the skill's. */
export const readSkill = (
  stem: string,
  text: string,
  { schemas, tools }: SkillSources = {}
): Result.Result<SkillSpec, ReadonlyArray<string>> => {
  const bytes = Buffer.byteLength(text)
  if (bytes > MANIFEST_BYTES_MAX) return Result.fail([`larger than ${MANIFEST_BYTES_MAX} bytes`])
  const decoded = Result.flatMap(decodeText(text), (value) => decode(withMachine(value), bytes))
  if (Result.isFailure(decoded)) return Result.fail([plain(decoded.failure)])
  const written = decoded.success
  const spec = schemas === undefined ? written : withPinned(written, schemas)
  const problems = [
    ...(BUILT_IN_SKILLS.some(({ name }) => name === spec.name)
      ? [`a built-in skill has the name ${spec.name}: choose another`]
      : []),
    // A folder of that name and the file of another skill would be one path.
    ...(spec.name.endsWith(".json") ? [`the name ${spec.name} ends like that of a file: leave .json out`] : []),
    ...(spec.name === stem ? [] : [`the skill is called ${spec.name}: name the file ${spec.name}.json`]),
    ...machineProblems(spec),
    ...(schemas === undefined ? [] : pinProblems(spec, schemas)),
    ...allSkillProblems(spec, tools)
  ]
  return problems.length === 0 ? Result.succeed(spec) : Result.fail(problems)
}

/** The skill of a file of a folder `skills`, by its path there: `<name>.json`, or `<name>/SKILL.md`. */
export const readSkillFile = (
  path: string,
  text: string,
  sources: SkillSources = {}
): Result.Result<SkillSpec, ReadonlyArray<string>> => {
  const [name = "", file] = path.split("/")
  return file === SKILL_FILE
    ? Result.flatMap(readSkillFolder(name, text), (spec) => readSkill(name, JSON.stringify(spec), sources))
    : readSkill(path.replace(/\.json$/u, ""), text, sources)
}

/** Bytes of a profile. */
const PROFILE_BYTES_MAX = 16 * 1024
/** Profiles of one repository. */
export const PROFILES_MAX = 64

const decodeProfile = Schema.decodeUnknownResult(Schema.fromJsonString(JobProfile), {
  errors: "all",
  onExcessProperty: "error"
})

/** The profile of a file's text, or what is wrong with it. `stem` is the file's name without `.json`, which is the type. */
export const readProfile = (
  stem: string,
  text: string,
  tools?: ToolCapabilities
): Result.Result<JobProfile, ReadonlyArray<string>> => {
  if (Buffer.byteLength(text) > PROFILE_BYTES_MAX) return Result.fail([`larger than ${PROFILE_BYTES_MAX} bytes`])
  const decoded = decodeProfile(text)
  if (Result.isFailure(decoded)) return Result.fail([plain(decoded.failure)])
  const { agent_type, permissions } = decoded.success
  const problems = [
    ...(agent_type === stem ? [] : [`the profile is for ${agent_type}: name the file ${agent_type}.json`]),
    ...permissions.tools.flatMap((tool, index) =>
      tools === undefined || tools.has(tool) ? [] : [`at ["permissions"]["tools"][${index}]: there is no tool ${tool}`]
    )
  ]
  return problems.length === 0 ? Result.succeed(decoded.success) : Result.fail(problems)
}
