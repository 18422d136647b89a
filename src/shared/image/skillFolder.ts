/**
 * A skill as a folder of the Agent Skills standard (https://agentskills.io/specification): SKILL.md with front matter and prose. It becomes a
 * skill of one state, whose task is the prose and whose tools are those that `allowed-tools` names, and no others.
 */
import { Result, Schema } from "effect"
import { isAlias, isNode, isScalar, parseDocument, visit, type YAMLError } from "yaml"
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
  List: "choir.fs.find",
  Bash: "choir.exec",
  WebFetch: "choir.web.fetch",
  WebSearch: "choir.web.search"
}

/** Tools of a skill that names none, as most public ones: it may read, and whatever else it needs is named by a person. */
const UNNAMED_TOOLS = ["choir.fs.read", "choir.fs.find", "choir.fs.search"]

const FrontMatter = Schema.Struct({
  name: SkillName,
  description: SkillSpec.fields.description,
  "allowed-tools": Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Array(Schema.String)]))),
  contract: Schema.optionalKey(Schema.Unknown),
  registry: Schema.optionalKey(Schema.Unknown),
  input_schema: Schema.optionalKey(Schema.Unknown),
  output_schema: Schema.optionalKey(Schema.Unknown),
  metadata: Schema.optionalKey(Schema.Unknown),
  /** Other harnesses' word for `allowed-tools`. */
  tools: Schema.optionalKey(Schema.Unknown)
})
type FrontMatter = typeof FrontMatter.Type

const decodeFront = Schema.decodeUnknownResult(FrontMatter, { errors: "all" })
const decodeTool = Schema.decodeUnknownResult(ToolNameInEitherForm)

/** The part between the two lines of three dashes, and what follows. */
const split = (
  text: string
): Result.Result<{ readonly front: string; readonly body: string; readonly above: number }, string> => {
  const lines = text.split("\n")
  if (lines[0]?.trimEnd() !== "---")
    return Result.fail("it does not begin with front matter: write --- on the first line")
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---")
  if (end < 0) return Result.fail("its front matter has no end: write --- below it")
  const front = lines.slice(1, end).join("\n")
  if (Buffer.byteLength(front) > FRONT_BYTES_MAX)
    return Result.fail(`its front matter is larger than ${FRONT_BYTES_MAX} bytes`)
  const below = lines.slice(end + 1).join("\n")
  const body = below.trim()
  const above = end + 1 + below.slice(0, below.indexOf(body)).split("\n").length - 1
  return Result.succeed({ front, body, above })
}

/** The first character that a name may not have. */
const nameProblem = (name: unknown): string | undefined => {
  const [wrong] = typeof name === "string" ? (/[^a-z0-9._-]/u.exec(name) ?? []) : []
  if (wrong === undefined) return undefined
  const small = wrong.toLowerCase()
  const instead = /^[a-z]$/u.test(small) && small !== wrong ? `write ${small}` : "a name has a-z, 0-9 and . _ -"
  return `its name has ${JSON.stringify(wrong)}: ${instead}`
}

const yamlOf = (text: string) =>
  parseDocument(text, { logLevel: "error", merge: false, schema: "core", version: "1.2" })

const yamlProblem = ({ errors, warnings }: ReturnType<typeof yamlOf>): YAMLError | undefined => errors[0] ?? warnings[0]

/** A key with a sentence, or with words behind brackets. Tools are a list. */
const VALUE = /^((?!allowed-tools:|tools:)[a-z][\w-]*:)[ \t]+((?:[\p{L}\p{N}]|\[[^[\]]*\][ \t]*[^ \t\r]).*?)[ \t\r]*$/iu

/** The front matter with quotes around values that are not valid YAML by themselves, as a sentence with a colon in it. */
const withQuotes = (front: string): string =>
  front
    .split("\n")
    .map((line) => {
      const [, key, value = ""] = VALUE.exec(line) ?? []
      return key === undefined || yamlProblem(yamlOf(line)) === undefined ? line : `${key} ${JSON.stringify(value)}`
    })
    .join("\n")

/** The document that a text is, or with those quotes. */
const frontDocument = (front: string) => {
  const document = yamlOf(front)
  return yamlProblem(document) === undefined ? document : yamlOf(withQuotes(front))
}

/** Where a problem is and its words; the front matter begins in the second line of its file. */
const yamlWords = ({ linePos, message }: YAMLError): string => {
  const words = (message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/u, "")
  return linePos === undefined ? words : `line ${linePos[0].line + 1}: ${words}`
}

/** YAML without what makes one text mean another: anchors, aliases and tags. */
const parseFront = (front: string): Result.Result<unknown, string> => {
  const read = Result.try({
    try: () => {
      const document = frontDocument(front)
      const problem = yamlProblem(document)
      if (problem !== undefined) return Result.fail(`its front matter is not YAML: ${yamlWords(problem)}`)
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
  return Result.mapError(
    decodeTool(name),
    () => `there is no tool ${name}: leave it out, or name the tools with --tools`
  )
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
  if (allowed === undefined && isScript(own)) return Result.succeed([])
  if (allowed === undefined && front.tools !== undefined)
    return Result.fail([
      'allowed-tools is missing, and the key "tools" is not read: name the tools that it may use, such as choir.fs.read, or give them with --tools; [] allows none'
    ])
  const named = allowed === undefined ? UNNAMED_TOOLS : (allowed ?? [])
  const written = typeof named === "string" ? (named.match(NAMES) ?? []) : named
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

/** Characters that the words about the rest of a long text take. */
const REST_CHARS_MAX = 400

/**
 * The text as the task of a state. Of a longer one the beginning, up to the end of a line, and where the rest is: in the skill's own folder, which its tools
 * can read. `above` is the number of the file's lines in front of the text.
 */
const objectiveOf = (
  name: string,
  body: string,
  above: number,
  tools: ReadonlyArray<string>
): Result.Result<string, string> => {
  if (body.length <= OBJECTIVE_CHARS_MAX) return Result.succeed(body)
  if (!tools.includes("choir.fs.read"))
    return Result.fail(
      `its text has ${body.length} characters, of which ${OBJECTIVE_CHARS_MAX} are shown: allow it choir.fs.read, by which it reads the rest, or move parts of it to files beside it`
    )
  const start = body.slice(0, OBJECTIVE_CHARS_MAX - REST_CHARS_MAX)
  const end = start.lastIndexOf("\n")
  const kept = (end > 0 ? start.slice(0, end) : start).toWellFormed()
  const line = above + kept.split("\n").length + 1
  const rest = `[This is the first part of the skill's text. Read the rest before you begin: choir-fs-read of /choir/skills/${name}/${SKILL_FILE} from line ${line} on.]`
  return Result.succeed(`${kept.trimEnd()}\n\n${rest}`)
}

/** The text with these tools named instead of any that it names; nothing without front matter. */
export const withTools = (text: string, tools: ReadonlyArray<string>): string | undefined => {
  const [, first = "", front = "", after = ""] = FRONT.exec(text) ?? []
  if (first === "") return undefined
  const others = front.replaceAll(ALLOWED, "")
  return `${first}allowed-tools: ${JSON.stringify(tools)}\n${others}${after}`
}

/** Whether a SKILL.md leaves out which tools it may use, so that it may only read. */
export const namesNoTools = (text: string): boolean => (FRONT.exec(text)?.[2] ?? "").search(ALLOWED) < 0

const FRONT = /^(\u{FEFF}?---[ \t]*\r?\n)((?:(?!---[ \t]*(?:\r?\n|$)).*\r?\n)*)(---[ \t]*(?:\r?\n[^]*)?)$/u
/** The key with all that belongs to its value: lines below it that are indented, or entries of its list. */
const ALLOWED = /^allowed-tools[ \t]*:.*\r?\n(?:(?:[ \t]+.*|-[ \t].*)\r?\n)*/gmu

/** A skill file as a folder makes it: its contract and its entry of the registry are checked with all of it. */
type SkillDraft = Pick<typeof SkillSpec.Encoded, "description" | "name"> &
  Partial<Pick<typeof SkillSpec.Encoded, "initial_state" | "max_steps" | "states">> &
  OwnKeys

const specOf = (front: FrontMatter, objective: string, allowed_tools: ReadonlyArray<string>): SkillDraft => {
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
        objective,
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
  const { above, body, front } = parts.success
  const parsed = parseFront(front)
  if (Result.isFailure(parsed)) return Result.fail([parsed.failure])
  // YAML has escapes, which the text does not show.
  const escaped = hiddenValues(parsed.success)
  if (escaped.length > 0) return Result.fail(escaped)
  const misnamed = isObject(parsed.success) ? nameProblem(parsed.success["name"]) : undefined
  if (misnamed !== undefined) return Result.fail([misnamed])
  const decoded = decodeFront(parsed.success)
  if (Result.isFailure(decoded)) return Result.fail([decoded.failure.message.replaceAll(/\s+/gu, " ").trim()])
  const { name } = decoded.success
  const tools = toolsOf(decoded.success)
  const problems = [
    ...(folder === undefined || name === folder ? [] : [`the skill is called ${name}: name the folder ${name}`]),
    ...(body === "" ? ["it says nothing below its front matter"] : []),
    ...(Result.isFailure(tools) ? tools.failure : [])
  ]
  if (Result.isFailure(tools)) return Result.fail(problems)
  const objective = isScript(ownKeys(decoded.success))
    ? Result.succeed(body)
    : objectiveOf(name, body, above, tools.success)
  if (Result.isFailure(objective)) return Result.fail([...problems, objective.failure])
  return problems.length > 0
    ? Result.fail(problems)
    : Result.succeed(specOf(decoded.success, objective.success, tools.success))
}
