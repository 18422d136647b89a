/**
 * The merge of a global and an agent's repository into what an image holds below `/choir`. Pure: files in, files and
 * warnings out, or every problem at once.
 */
import { Result } from "effect"
import type { SecretName } from "#schema/Ids.ts"
import type { Capability } from "#schema/Capability.ts"
import { capabilitiesOf } from "#schema/Tool.ts"
import { BUILT_IN_CAPABILITIES, BUILT_IN_TOOLS, type ToolCapabilities } from "#src/shared/image/builtInTools.ts"
import { IMAGE_SKILLS_MAX, IMAGE_TOOLS_MAX } from "#src/shared/limits.ts"
import { readSkill, type SkillSources } from "#src/shared/image/skillFile.ts"
import { readSkillFolder, SKILL_FILE, SKILL_FILE_BYTES_MAX } from "#src/shared/image/skillFolder.ts"
import {
  idleManifestKeys,
  MANIFEST_BYTES_MAX,
  manifestParts,
  readToolManifest,
  type ToolScope
} from "#src/shared/image/toolManifest.ts"
import { bakedProfiles, bakedSchemas } from "./bakedContracts.ts"
import { isManifest, type LabelledFiles, textOf, within } from "./repoFiles.ts"
import { DOCKERFILE_BYTES_MAX, dockerfileProblems, type DockerfileRole, DOCKERFILES } from "./dockerfile.ts"
import { encodingProblem } from "#src/shared/text/jsonSyntax.ts"
import { likeTools } from "./likeTools.ts"
import { skillIndex } from "./skillIndex.ts"
import { pinProblems, SKILL_LOCK_FILE } from "./skillPins.ts"
import { type BadRepository, badRepository, isHeld, type RepoFile, type RepoProblem, shownPath } from "./Tree.ts"

/** An identity file: it is part of every prompt. */
const IDENTITY_BYTES_MAX = 64 * 1024

/** The contents of an image. Paths are relative to `/choir`. */
export interface ImagePlan {
  readonly files: ReadonlyArray<RepoFile>
  /** Executables that the Dockerfiles have to build from sources; empty when nothing is compiled. */
  readonly compiled: ReadonlyArray<string>
  readonly warnings: ReadonlyArray<string>
}

export interface MergeOptions {
  /** Whether the Dockerfiles are built, so that a tool may have sources instead of an executable. */
  readonly compiles?: boolean
  /** Whether a tool is cut off from the network when its manifest says that it does not need it. */
  readonly cutsNetwork?: boolean
  /** The reason why a tool could not be given a secret that its manifest names; `undefined` when it could, or when that is unknown. */
  readonly secretProblem?: (name: SecretName) => string | undefined
}

/** Tools of one request to a model, as OpenAI and others limit them. */
export const REQUEST_TOOLS_MAX = 128

interface Part {
  readonly files: ReadonlyArray<RepoFile>
  readonly compiled?: ReadonlyArray<string>
  /** The tools that the image takes from it; `leftOut` says why it lacks the others. */
  readonly tools?: ReadonlyArray<readonly [name: string, capabilities: ReadonlyArray<Capability>]>
  readonly leftOut?: ReadonlyArray<RepoProblem>
  readonly problems: ReadonlyArray<RepoProblem>
  readonly warnings: ReadonlyArray<string>
}

interface CheckedTool {
  /** The name of the manifest's file, which is the tool's. */
  readonly stem: string
  /** The executable, relative to `tools/`. */
  readonly executable: string
  /** Whether there are sources instead of it. */
  readonly unbuilt: boolean
  /** Keys of the manifest that have no effect. */
  readonly idle: ReadonlyArray<string>
  readonly capabilities: ReadonlyArray<Capability>
  readonly reasons: ReadonlyArray<string>
}

/** Tools or folders that one warning names. */
const TOOLS_NAMED_MAX = 5

/** The unit of a file, which is overridden as one: `x.json`, `x` and all of `x/`. */
const unitOf = (file: RepoFile) =>
  isManifest(file) ? file.path.slice(0, -".json".length) : (file.path.split("/")[0] ?? "")

/** The problem of a folder with more manifests than an agent accepts. */
const tooMany = (repo: string, folder: "tools" | "skills", count: number, max: number): ReadonlyArray<RepoProblem> =>
  count > max
    ? [{ repo, path: `${folder}/`, reason: `${count} manifests are too many: at most ${max} are allowed` }]
    : []

/** One sentence for all tools of a repository, since many manifests are made by the same hand. */
const idleKeys = (label: string, tools: ReadonlyArray<CheckedTool>): ReadonlyArray<string> => {
  const found = tools.filter(({ idle }) => idle.length > 0)
  if (found.length === 0) return []
  const keys = [...new Set(found.flatMap(({ idle }) => idle))].map((key) => `runtime.${key}`)
  const names = found.map(({ stem }) => shownPath(stem)).slice(0, TOOLS_NAMED_MAX)
  const more = found.length - names.length
  return [
    `${label}: ${keys.join(", ")} of tools/*.json ${keys.length === 1 ? "has" : "have"} no effect (this version): ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`
  ]
}

/** Why no system can run a tool's program, by how it begins. */
const programProblems = (file: RepoFile): ReadonlyArray<string> => {
  if (!isHeld(file)) return []
  const [first = ""] = Buffer.from(file.bytes).toString("utf8").split("\n", 1)
  const name = `its program tools/${shownPath(file.path)} cannot be run`
  const encoding = encodingProblem(first)
  if (encoding !== undefined) return [`${name}: ${encoding}`]
  return first.startsWith("#!") && first.endsWith("\r")
    ? [`${name}: its lines end as those of Windows do. Save it with LF, and put "* text eol=lf" into .gitattributes`]
    : []
}

const checkTool = (
  scope: ToolScope,
  file: RepoFile,
  tools: ReadonlyArray<RepoFile>,
  { cutsNetwork = false, secretProblem = () => undefined }: MergeOptions
): CheckedTool => {
  const stem = unitOf(file)
  const refused = (...reasons: ReadonlyArray<string>): CheckedTool => ({
    stem,
    executable: "",
    unbuilt: false,
    idle: [],
    capabilities: [],
    reasons
  })
  const text = textOf(file, MANIFEST_BYTES_MAX)
  if (Result.isFailure(text)) return refused(text.failure)
  const read = readToolManifest(scope, text.success)
  const { executable, name, secret_resources } = manifestParts(scope, text.success)
  const idle = idleManifestKeys(text.success, cutsNetwork)
  const reasons = [
    ...(Result.isFailure(read) ? read.failure : []),
    ...(name === undefined || name === stem ? [] : [`the tool is called ${name}: name the file ${name}.json`]),
    ...secret_resources.flatMap(([index, name]) => {
      const problem = secretProblem(name)
      return problem === undefined ? [] : [`runtime.secret_resources.${index}: ${problem}`]
    })
  ]
  if (executable === undefined) return refused(...reasons)
  const capabilities = Result.isSuccess(read) ? capabilitiesOf(read.success.manifest) : []
  const program = tools.find(({ path }) => path === executable)
  if (program !== undefined)
    return { stem, executable, unbuilt: false, idle, capabilities, reasons: [...reasons, ...programProblems(program)] }
  const unbuilt = tools.some(({ path }) => path.startsWith(`${stem}/`))
  return unbuilt
    ? { stem, executable, unbuilt, idle, capabilities, reasons }
    : refused(...reasons, `its executable tools/${shownPath(executable)} is missing`)
}

/**
 * A scope's tools without the units in `overridden`. Of a tool that is still to be compiled the image has the manifest and what the
 * Dockerfile makes, or nothing.
 */
const toolsOf = (
  scope: ToolScope,
  { label, files }: LabelledFiles,
  overridden: ReadonlySet<string>,
  options: MergeOptions
): Part => {
  const { compiles = false } = options
  const all = within(files, "tools")
  const manifestFiles = all.filter(isManifest)
  // Those beyond are refused by their number, and take no time.
  const checked = manifestFiles
    .slice(0, IMAGE_TOOLS_MAX)
    .map((file) =>
      checkTool(
        scope,
        file,
        all,
        overridden.has(unitOf(file)) ? { ...options, secretProblem: () => undefined } : options
      )
    )
  const kept = checked.filter(({ stem }) => !overridden.has(stem))
  const unbuilt = kept.filter((tool) => tool.unbuilt)
  const left = new Set([...overridden, ...unbuilt.map(({ stem }) => stem)])
  const executables = new Set(kept.map(({ executable }) => executable))
  const manifests = new Set(compiles ? unbuilt.map(({ stem }) => `${stem}.json`) : [])
  const leftOut = (compiles ? [] : unbuilt).map(({ stem }) => stem)
  return {
    tools: kept
      .filter(({ stem }) => !leftOut.includes(stem))
      .map(({ capabilities, stem }) => [stem, capabilities] as const),
    leftOut: leftOut.map((stem) => ({
      repo: label,
      path: `tools/${shownPath(stem)}.json`,
      reason:
        "it has sources and no executable; this runtime compiles nothing, so it is left out: commit the executable"
    })),
    compiled: compiles ? unbuilt.map(({ executable }) => `tools/${scope}/${executable}`) : [],
    files: all
      .filter((file) => !left.has(unitOf(file)) || executables.has(file.path) || manifests.has(file.path))
      .map((file) => ({
        ...file,
        path: `tools/${scope}/${file.path}`,
        executable: file.executable || executables.has(file.path)
      })),
    problems: [
      ...tooMany(label, "tools", manifestFiles.length, IMAGE_TOOLS_MAX),
      ...checked.flatMap(({ stem, reasons }) =>
        reasons.map((reason) => ({ repo: label, path: `tools/${shownPath(stem)}.json`, reason }))
      )
    ],
    warnings: [
      ...leftOut.map(
        (stem) =>
          `${label}: the tool ${stem} has sources and no executable; this runtime compiles nothing, so it is left out`
      ),
      ...idleKeys(label, kept)
    ]
  }
}

const skillReasons = (file: RepoFile, sources: SkillSources): ReadonlyArray<string> => {
  const text = textOf(file, MANIFEST_BYTES_MAX)
  if (Result.isFailure(text)) return [text.failure]
  return Result.match(readSkill(unitOf(file), text.success, sources), {
    onSuccess: () => [],
    onFailure: (problems) => problems
  })
}

const isSkillFile = ({ path }: RepoFile) => path.split("/").length === 2 && path.endsWith(`/${SKILL_FILE}`)

/** A folder with a SKILL.md as the skill file that the image has beside it. */
const readFolder = (file: RepoFile, manifests: ReadonlySet<string>): Result.Result<RepoFile, ReadonlyArray<string>> => {
  const name = unitOf(file)
  if (manifests.has(name)) return Result.fail([`there is a skill file ${shownPath(name)}.json too: keep one of them`])
  const text = textOf(file, SKILL_FILE_BYTES_MAX)
  if (Result.isFailure(text)) return Result.fail([text.failure])
  return Result.map(readSkillFolder(name, text.success), (spec) => ({
    path: `${name}.json`,
    executable: false,
    bytes: Buffer.from(`${JSON.stringify(spec, undefined, 2)}\n`)
  }))
}

/** Warnings about folders that somebody may take for skills. */
const ignoredSkills = (label: string, all: ReadonlyArray<RepoFile>): ReadonlyArray<string> => {
  const skills = new Set(all.filter((file) => isManifest(file) || isSkillFile(file)).map(unitOf))
  const folders = new Set(all.filter(({ path }) => path.includes("/")).map(unitOf))
  return [...folders]
    .filter((name) => !skills.has(name))
    .slice(0, TOOLS_NAMED_MAX)
    .map(
      (name) =>
        `${label}: skills/${shownPath(name)}/ is ignored: a skill is a file skills/<name>.json or a folder with a ${SKILL_FILE}`
    )
}

const skillsOf = ({ label, files }: LabelledFiles, overridden: ReadonlySet<string>, sources: SkillSources): Part => {
  const all = within(files, "skills")
  const reserved = all.filter(({ path }) => path.startsWith("_"))
  const written = all.filter(isManifest)
  const names = new Set(written.map(unitOf))
  const skillFiles = all.filter(isSkillFile)
  const folders = skillFiles
    .slice(0, IMAGE_SKILLS_MAX)
    .map((file) => ({ path: file.path, made: readFolder(file, names) }))
  const problem = (path: string, reasons: ReadonlyArray<string>) =>
    reasons.map((reason) => ({ repo: label, path: `skills/${shownPath(path)}`, reason }))
  const made = folders.flatMap(({ made }) => (Result.isSuccess(made) ? [made.success] : []))
  return {
    files: [...all, ...made]
      .filter((file) => !overridden.has(unitOf(file)))
      .map((file) => ({ ...file, path: `skills/${file.path}`, executable: false })),
    problems: [
      ...tooMany(label, "skills", written.length + skillFiles.length, IMAGE_SKILLS_MAX),
      ...pinProblems(files).map((reason) => ({ repo: label, path: SKILL_LOCK_FILE, reason })),
      ...reserved.flatMap(({ path }) => problem(path, ["names that begin with _ are Choir's own: choose another"])),
      ...written.slice(0, IMAGE_SKILLS_MAX).flatMap((file) => problem(file.path, skillReasons(file, sources))),
      ...folders.flatMap(({ made, path }) =>
        problem(path, Result.isFailure(made) ? made.failure : skillReasons(made.success, sources))
      )
    ],
    warnings: ignoredSkills(label, all)
  }
}

/** The tools of both repositories as an image has them: the agent's own override global ones. */
const toolParts = (global: LabelledFiles, agent: LabelledFiles, options: MergeOptions) => {
  const agentTools = new Set(within(agent.files, "tools").filter(isManifest).map(unitOf))
  return [toolsOf("global", global, agentTools, options), toolsOf("agent", agent, new Set(), options)]
}

const toolsIn = (parts: ReadonlyArray<Part>): ToolCapabilities =>
  new Map([...BUILT_IN_CAPABILITIES, ...parts.flatMap(({ tools = [] }) => tools)])

/** The other files that a skill of an image of these repositories may name; tools that are left out are not among them. */
export const skillSources = (
  global: LabelledFiles,
  agent: LabelledFiles,
  options: MergeOptions = {}
): Required<SkillSources> => ({
  tools: toolsIn(toolParts(global, agent, options)),
  schemas: bakedSchemas(global, agent).schemas
})

/** One identity file, from the first repository that has it. */
const identityOf = (name: string, repos: ReadonlyArray<LabelledFiles>): Part => {
  const path = `identity/${name}`
  const found = repos.flatMap(({ label, files }) =>
    files.filter((file) => file.path === path).map((file) => ({ label, file }))
  )[0]
  const problem = (repo: string, reason: string): Part => ({
    files: [],
    problems: [{ repo, path, reason }],
    warnings: []
  })
  if (found === undefined) return problem(repos.map(({ label }) => label).join(" and "), "the file is missing")
  const text = textOf(found.file, IDENTITY_BYTES_MAX)
  if (Result.isFailure(text)) return problem(found.label, text.failure)
  return { files: [{ ...found.file, path: name, executable: false }], problems: [], warnings: [] }
}

/** The problems of a Dockerfile. It is not part of `/choir`; it is refused here so that no build begins with it. */
const dockerfileOf = (role: DockerfileRole, { files, label }: LabelledFiles): Part => {
  const path = DOCKERFILES[role]
  const file = files.find((file) => file.path === path)
  const problems =
    file === undefined
      ? []
      : isHeld(file)
        ? dockerfileProblems(role, file.bytes)
        : [{ line: 0, reason: `it is larger than ${DOCKERFILE_BYTES_MAX} bytes` }]
  return {
    files: [],
    problems: problems.map(({ line, reason }) => ({
      repo: label,
      path: line === 0 ? path : `${path}:${line}`,
      reason
    })),
    warnings: []
  }
}

/** A model is offered all tools of an agent at once, and providers take no more of them in a request. */
const tooManyForRequest = (global: LabelledFiles, agent: LabelledFiles, count: number): ReadonlyArray<RepoProblem> =>
  count <= REQUEST_TOOLS_MAX
    ? []
    : [
        {
          repo: `${global.label} and ${agent.label}`,
          path: "tools/",
          reason: `${count} tools are too many, ${BUILT_IN_TOOLS.length} built-in ones included: a model's provider takes at most ${REQUEST_TOOLS_MAX}. Remove ${count - REQUEST_TOOLS_MAX} of them`
        }
      ]

/**
 * Agent tools and skills replace global ones of their name; USER.md is the global one, SOUL.md and SOUL-CORE.md are the agent's
 * where it has them. A manifest's file name is its tool's name, so that one name has one file.
 */
export const merge = (
  global: LabelledFiles,
  agent: LabelledFiles,
  options: MergeOptions = {}
): Result.Result<ImagePlan, BadRepository> => {
  const agentSkills = new Set(within(agent.files, "skills").map(unitOf))
  const ofTools = toolParts(global, agent, options)
  const tools = toolsIn(ofTools)
  const pinned = bakedSchemas(global, agent)
  const sources = { tools, schemas: pinned.schemas }
  const parts: ReadonlyArray<Part> = [
    ...ofTools,
    skillsOf(global, agentSkills, sources),
    skillsOf(agent, new Set(), sources),
    pinned.part,
    bakedProfiles(global, agent, tools),
    identityOf("USER.md", [global]),
    identityOf("SOUL.md", [agent, global]),
    identityOf("SOUL-CORE.md", [agent, global]),
    dockerfileOf("base", global),
    dockerfileOf("agent", agent)
  ]
  const named = [global, agent].map(({ label }, at) => ({
    label,
    names: (ofTools[at]?.tools ?? []).map(([name]) => name)
  }))
  const problems = [
    ...parts.flatMap((part) => part.problems),
    ...tooManyForRequest(global, agent, tools.size),
    ...likeTools(named)
  ]
  // A skill may miss a tool that is left out, and the reason is then part of the problem.
  const left = ofTools.flatMap(({ leftOut = [] }) => leftOut)
  if (problems.length > 0) return Result.fail(badRepository([...problems, ...left]))
  const ignored = agent.files.some(({ path }) => path === "identity/USER.md")
    ? [`${agent.label}: identity/USER.md is not used, the user is described in the ${global.label}`]
    : []
  const files = parts.flatMap((part) => part.files)
  const index = skillIndex(files, pinned.schemas)
  return Result.succeed({
    files: [...files, ...index.files],
    compiled: parts.flatMap((part) => part.compiled ?? []),
    warnings: [...parts.flatMap((part) => part.warnings), ...ignored, ...index.warnings]
  })
}
