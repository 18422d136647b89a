/** choirctl skill and tool: the skills and tools of an agent, and the check of a skill file. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { SkillName } from "#schema/Skill.ts"
import type { SkillDetail, SkillSummary, ToolSummary } from "#schema/AgentsApi.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { EXIT, Unsuccessful, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { fields, safeLine, table } from "#src/choirctl/terminal/text.ts"
import { readSkillFile } from "#src/shared/image/skillFile.ts"
import { SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"
import { IMAGE_SKILLS_MAX } from "#src/shared/limits.ts"
import { agentId } from "./arguments.ts"
import { skillRuns } from "./runs.ts"
import { skillCancel, skillRun } from "./skillRun.ts"
import { add } from "./skillAdd.ts"

const toolList = Command.make(
  "list",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* ask("skills", (choird) => choird.tools({ params: { id } }))
    yield* print(rows, toolTable)
  })
).pipe(
  Command.withDescription("List the tools of an agent: the built-in ones and those of its newest image"),
  Command.withExamples([{ command: "choirctl tool list agent-1" }])
)

export const tool = Command.make("tool").pipe(
  Command.withDescription("List agents' tools"),
  Command.withSubcommands([toolList])
)

/** Skills and tools for people. */
const skillTable = (rows: ReadonlyArray<SkillSummary>, color: boolean): string =>
  table(
    ["SKILL", "FROM", "STATES", "STEPS", "DESCRIPTION"],
    rows.map(({ description, max_steps, name, source, states }) => [
      name,
      source,
      String(states),
      String(max_steps),
      safeLine(description)
    ]),
    color
  )

export const toolTable = (rows: ReadonlyArray<ToolSummary>, color: boolean): string =>
  table(
    ["TOOL", "FROM", "EFFECT", "LANES", "DESCRIPTION"],
    rows.map(({ description, effect, exposure, name, source }) => [
      name,
      source,
      effect ?? "",
      exposure ?? "",
      safeLine(description ?? "")
    ]),
    color
  )

/** Each state with its tools and where it leads, the first one first. */
const skillText = ({ source, spec }: SkillDetail, color: boolean): string => {
  const head = fields([
    ["skill", spec.name],
    ["from", source],
    ["description", safeLine(spec.description)],
    ["initial state", spec.initial_state],
    ["steps", `at most ${spec.max_steps}`],
    ["interruptible", spec.interruptible ? "yes" : "only by a person"]
  ])
  const states = table(
    ["STATE", "LEADS TO", "TOOLS", "OBJECTIVE"],
    Object.entries(spec.states).map(([name, { allowed_tools, objective, terminal, transitions }]) => [
      name,
      terminal ? "the end" : transitions.map(({ on, to }) => `${on}: ${to}`).join(", "),
      allowed_tools.join(", "),
      safeLine(objective ?? "")
    ]),
    color
  )
  return `${head}\n\n${states}`
}

/** The result of checking a file. */
interface CheckedSkill {
  readonly file: string
  readonly ok: boolean
  readonly problems: ReadonlyArray<string>
}

const checkText = (rows: ReadonlyArray<CheckedSkill>): string =>
  rows.length === 0
    ? "there is no skill file"
    : rows
        .map(({ file, ok, problems }) =>
          ok
            ? `${safeLine(file)}: well-formed`
            : problems.map((problem) => `${safeLine(file)}: ${safeLine(problem)}`).join("\n")
        )
        .join("\n")

const list = Command.make(
  "list",
  { id: agentId },
  Effect.fnUntraced(function* ({ id }) {
    const rows = yield* ask("skills", (choird) => choird.list({ params: { id } }))
    yield* print(rows, skillTable)
  })
).pipe(
  Command.withDescription("List the skills of an agent: the built-in ones and those of its newest image"),
  Command.withExamples([{ command: "choirctl skill list agent-1" }])
)

const name = Argument.String("skill").pipe(
  Argument.withDescription("Skill name from choirctl skill list"),
  Argument.withSchema(SkillName)
)

const show = Command.make(
  "show",
  { id: agentId, name },
  Effect.fnUntraced(function* ({ id, name }) {
    const skill = yield* ask("skills", (choird) => choird.show({ params: { id, name } }))
    yield* print(skill, skillText)
  })
).pipe(
  Command.withDescription("Show a skill's states with their tools and transitions"),
  Command.withExamples([{ command: "choirctl skill show agent-1 tool-builder" }])
)

/** The file itself, or the skills of a folder: its skill files, its SKILL.md, and those of the folders in it. */
const filesAt = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const { type } = yield* Effect.mapError(fs.stat(path), () =>
    usageError(`there is no file or folder ${path}`, "name a skill, or the skills folder of a repository")
  )
  if (type !== "Directory") return [path]
  // A file where a folder would be has no such file in it either.
  const exists = (file: string) => Effect.orElseSucceed(fs.exists(file), () => false)
  const own = join(path, SKILL_FILE)
  if (yield* exists(own)) return [own]
  const names = (yield* fs.readDirectory(path)).sort().slice(0, ENTRIES_MAX)
  const found = yield* Effect.forEach(names, (name) => {
    if (name.endsWith(".json")) return Effect.succeed([join(path, name)])
    const file = join(path, name, SKILL_FILE)
    return Effect.map(exists(file), (found) => (found ? [file] : []))
  })
  return found.flat().slice(0, IMAGE_SKILLS_MAX + 1)
})

/** Entries of a folder that are looked at. */
const ENTRIES_MAX = 10_000

const textProblems = (file: string, text: string): ReadonlyArray<string> => {
  const name = basename(file)
  const read = readSkillFile(name === SKILL_FILE ? `${basename(dirname(resolve(file)))}/${name}` : name, text)
  return Result.isFailure(read) ? read.failure : []
}

const checkFile = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(file)
  const problems =
    type !== "File"
      ? ["it is not a regular file"]
      : size > BigInt(MANIFEST_BYTES_MAX)
        ? [`larger than ${MANIFEST_BYTES_MAX} bytes`]
        : textProblems(file, yield* fs.readFileString(file))
  return { file, ok: problems.length === 0, problems } satisfies CheckedSkill
})

const check = Command.make(
  "check",
  {
    path: Argument.String("path").pipe(
      Argument.withDescription("A skill file, a folder with a SKILL.md, or a folder of skills")
    )
  },
  Effect.fnUntraced(function* ({ path }) {
    const rows = yield* onHost(Effect.flatMap(filesAt(path), (files) => Effect.forEach(files, checkFile)))
    yield* print(rows, checkText)
    if (rows.some(({ ok }) => !ok)) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(
  Command.withDescription("Check skills without choird; a build also checks that their tools exist"),
  Command.withExamples([
    { command: "choirctl skill check skills/careful_change.json" },
    { command: "choirctl skill check skills/meeting-notes" }
  ])
)

export const skill = Command.make("skill").pipe(
  Command.withDescription("List, show, check and add agents' skills"),
  Command.withSubcommands([list, show, check, add, skillRun, skillCancel, skillRuns])
)
