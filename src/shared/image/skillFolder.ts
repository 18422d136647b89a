/**
 * A skill as a folder of the Agent Skills standard (https://agentskills.io/specification): SKILL.md with front matter and prose. It becomes a
 * skill of one state, whose task is the prose and whose tools are those that `allowed-tools` names, and no others.
 */
import { Result, Schema } from "effect"
import { isAlias, isNode, isScalar, parseDocument, visit } from "yaml"
import { OBJECTIVE_CHARS_MAX, SkillName, SkillSpec } from "#schema/Skill.ts"
import { ToolNameInEitherForm } from "#schema/Tool.ts"
import { hiddenProblem, hiddenValues } from "./hiddenCharacters.ts"

/** The file of such a folder that says what the skill is. */
export const SKILL_FILE = "SKILL.md"
/** Bytes of the front matter; the standard's own keys fit many times. */
const FRONT_BYTES_MAX = 8192
/** Bytes of the file. */
export const SKILL_FILE_BYTES_MAX = 64 * 1024
/** Model calls of such a skill, since the standard has no word for it. */
const STEPS_MAX = 60

/** Names of other harnesses' tools in public skills, and the tools here that do the same. */
const SAME_TOOL: Readonly<Record<string, string>> = {
  Read: "choir.fs.read",
  Write: "choir.fs.write",
  Edit: "choir.fs.edit",
  MultiEdit: "choir.fs.edit",
  Grep: "choir.fs.search",
  Glob: "choir.fs.find",
  LS: "choir.fs.find",
  Bash: "choir.exec"
}

const FrontMatter = Schema.Struct({
  name: SkillName,
  description: SkillSpec.fields.description,
  "allowed-tools": Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Schema.String)]))),
  contract: Schema.optionalKey(Schema.Unknown),
  registry: Schema.optionalKey(Schema.Unknown),
  input_schema: Schema.optionalKey(Schema.Unknown),
  output_schema: Schema.optionalKey(Schema.Unknown),
  metadata: Schema.optionalKey(Schema.Unknown)
})
type FrontMatter = typeof FrontMatter.Type

const decodeFront = Schema.decodeUnknownResult(FrontMatter, { errors: "all" })
const decodeTool = Schema.decodeUnknownResult(ToolNameInEitherForm)

/** The part between the two lines of three dashes, and what follows. */
const split = (text: string): Result.Result<{ readonly front: string; readonly body: string }, string> => {
  const lines = text.split("\n")
  if (lines[0]?.trimEnd() !== "---")
    return Result.fail("it does not begin with front matter: write --- on the first line")
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---")
  if (end < 0) return Result.fail("its front matter has no end: write --- below it")
  const front = lines.slice(1, end).join("\n")
  if (Buffer.byteLength(front) > FRONT_BYTES_MAX)
    return Result.fail(`its front matter is larger than ${FRONT_BYTES_MAX} bytes`)
  return Result.succeed({
    front,
    body: lines
      .slice(end + 1)
      .join("\n")
      .trim()
  })
}

/** YAML without what makes one text mean another: anchors, aliases and tags. */
const parseFront = (front: string): Result.Result<unknown, string> => {
  const read = Result.try({
    try: () => {
      const document = parseDocument(front, { logLevel: "error", merge: false, schema: "core", version: "1.2" })
      const [problem] = [...document.errors, ...document.warnings]
      if (problem !== undefined) return Result.fail(`its front matter is not YAML: ${problem.message.split("\n")[0]}`)
      let refused: string | undefined
      visit(document, (_, node) => {
        if (isAlias(node) || (isNode(node) && "anchor" in node && node.anchor !== undefined)) refused = "anchors"
        else if (isNode(node) && node.tag !== undefined) refused = "tags"
        else if (isScalar(node) && typeof node.value === "bigint") refused = "numbers of that size"
        return refused === undefined ? undefined : visit.BREAK
      })
      return refused === undefined
        ? Result.succeed(document.toJS({ maxAliasCount: 0 }) as unknown)
        : Result.fail(`its front matter has ${refused}, which are not read: write the value itself`)
    },
    // Nested too deeply for its reader.
    catch: () => "its front matter cannot be read"
  })
  return Result.flatMap(read, (inner) => inner)
}

const toolOf = (written: string): Result.Result<string, string> => {
  const [name = "", rest] = written.split("(", 2)
  if (rest !== undefined)
    return Result.fail(
      `${written} allows only part of a tool, which cannot be enforced: write ${SAME_TOOL[name] ?? name}`
    )
  const same = Object.hasOwn(SAME_TOOL, name) ? SAME_TOOL[name] : undefined
  if (same !== undefined) return Result.succeed(same)
  return Result.mapError(decodeTool(name), () => `there is no tool ${name}`)
}

/** Names apart by spaces or commas, outside of brackets. */
const NAMES = /[^\s,(]+(?:\([^)]*\))?/gu

type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value)

/** The keys of a skill file that a folder may have as well. */
const OWN_KEYS = ["contract", "registry", "input_schema", "output_schema"] as const
type OwnKeys = Partial<Readonly<Record<(typeof OWN_KEYS)[number], unknown>>>

/** Choir's own keys, which are in the front matter or below `metadata`, where every reader of the standard lets them be. */
const ownKeys = (front: FrontMatter): OwnKeys => {
  const below = isObject(front.metadata) ? front.metadata : {}
  const own = OWN_KEYS.flatMap((key) => {
    const value = front[key] ?? (isObject(below[key]) ? below[key] : undefined)
    return value === undefined ? [] : [[key, value] as const]
  })
  return Object.fromEntries(own)
}

/** The tools of a workflow, as they are written. */
const workflowTools = ({ registry }: OwnKeys): ReadonlyArray<string> => {
  const workflow = isObject(registry) && Array.isArray(registry["workflow"]) ? registry["workflow"] : []
  return workflow.flatMap((step: unknown) =>
    isObject(step) && typeof step["tool"] === "string" ? [step["tool"].replaceAll("-", ".")] : []
  )
}

const isScript = ({ contract }: OwnKeys): boolean =>
  isObject(contract) && (contract["execution_class"] === "deterministic" || contract["execution_class"] === "tool")

const toolsOf = (front: FrontMatter): Result.Result<ReadonlyArray<string>, ReadonlyArray<string>> => {
  const { "allowed-tools": allowed } = front
  const own = ownKeys(front)
  if (allowed === undefined)
    return isScript(own)
      ? Result.succeed([])
      : Result.fail(["allowed-tools is missing: name the tools that it may use, such as choir.fs.read; [] allows none"])
  const written = typeof allowed === "string" ? (allowed.match(NAMES) ?? []) : (allowed ?? [])
  const read = written.map(toolOf)
  const tools = [...new Set(read.flatMap((one) => (Result.isSuccess(one) ? [one.success] : [])))]
  const problems = [
    ...read.flatMap((one) => (Result.isFailure(one) ? [one.failure] : [])),
    ...workflowTools(own)
      .filter((tool) => !tools.includes(tool))
      .map((tool) => `the workflow calls ${tool}: add it`)
  ]
  return problems.length > 0
    ? Result.fail(problems.map((problem) => `allowed-tools: ${problem}`))
    : Result.succeed(tools)
}

/** A skill file as a folder makes it: its contract and its entry of the registry are checked with all of it. */
type SkillDraft = Pick<typeof SkillSpec.Encoded, "description" | "name"> &
  Partial<Pick<typeof SkillSpec.Encoded, "initial_state" | "max_steps" | "states">> &
  OwnKeys

const specOf = (front: FrontMatter, body: string, allowed_tools: ReadonlyArray<string>): SkillDraft => {
  const { description, name } = front
  const own = ownKeys(front)
  // The runtime does the work, and the text is for people.
  if (isScript(own)) return { name, description, ...own }
  return {
    name,
    description,
    initial_state: "do",
    max_steps: STEPS_MAX,
    states: {
      do: {
        objective: body,
        allowed_tools,
        transitions: [
          { on: "done", to: "done" },
          { on: "error", to: "failed" }
        ]
      },
      done: { terminal: true },
      failed: { terminal: true }
    },
    ...own
  }
}

/**
 * The skill of a folder's SKILL.md, as the JSON of a skill file, or everything that is wrong with it. Without the name of the `folder`
 * the skill may have any.
 */
export const readSkillFolder = (
  folder: string | undefined,
  given: string
): Result.Result<SkillDraft, ReadonlyArray<string>> => {
  if (Buffer.byteLength(given) > SKILL_FILE_BYTES_MAX)
    return Result.fail([`larger than ${SKILL_FILE_BYTES_MAX} bytes: move parts of it to files beside it`])
  const text = given.replace(/^\u{FEFF}/u, "").replaceAll("\r\n", "\n")
  const hidden = hiddenProblem(text)
  if (hidden !== undefined) return Result.fail([hidden])
  const parts = split(text)
  if (Result.isFailure(parts)) return Result.fail([parts.failure])
  const { body, front } = parts.success
  const parsed = parseFront(front)
  if (Result.isFailure(parsed)) return Result.fail([parsed.failure])
  // YAML has escapes, which the text does not show.
  const escaped = hiddenValues(parsed.success)
  if (escaped.length > 0) return Result.fail(escaped)
  const decoded = decodeFront(parsed.success)
  if (Result.isFailure(decoded)) return Result.fail([decoded.failure.message.replaceAll(/\s+/gu, " ").trim()])
  const { name } = decoded.success
  const tools = toolsOf(decoded.success)
  const problems = [
    ...(folder === undefined || name === folder ? [] : [`the skill is called ${name}: name the folder ${name}`]),
    ...(body === "" ? ["it says nothing below its front matter"] : []),
    ...(body.length > OBJECTIVE_CHARS_MAX
      ? [
          `its text has ${body.length} characters, and at most ${OBJECTIVE_CHARS_MAX} are read: move parts of it to files beside it`
        ]
      : []),
    ...(Result.isFailure(tools) ? tools.failure : [])
  ]
  return problems.length > 0 || Result.isFailure(tools)
    ? Result.fail(problems)
    : Result.succeed(specOf(decoded.success, body, tools.success))
}
