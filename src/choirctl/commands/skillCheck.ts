/** choirctl skill check: the nine points of skills on this host, without choird. */
import { isUtf8 } from "node:buffer"
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import { Argument, Command } from "effect/cli"
import type { SkillReport } from "#schema/SkillCheck.ts"
import { skillRepository } from "#src/choirctl/home/skillRepository.ts"
import { EXIT, Unsuccessful, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { type Cell, safeLine, table } from "#src/choirctl/terminal/text.ts"
import { readSkillFile } from "#src/shared/image/skillFile.ts"
import { SKILL_FILE, withTools } from "#src/shared/image/skillFolder.ts"
import { gateReport, unreadableReport } from "#src/shared/image/skillGate.ts"
import { boundsText, gradeText, beginsText } from "#src/shared/image/skillReportText.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"
import { IMAGE_SKILLS_MAX } from "#src/shared/limits.ts"
import { toolNames, toolsFlag } from "#src/choirctl/commands/flags/toolsFlag.ts"

/** The result of checking a file. `problems` keep the file from being read. */
interface CheckedSkill extends SkillReport {
  readonly file: string
  readonly ok: boolean
  readonly problems: ReadonlyArray<string>
}

const listed = (names: ReadonlyArray<string>) => (names.length === 0 ? "none" : names.join(", "))

/** The nine points below each other, then what a run can take. */
export const reportText = (report: SkillReport, color: boolean): string => {
  const rows = report.points.map(({ detail, ok, point }): ReadonlyArray<Cell> => [
    { text: ok ? "yes" : "no", style: ok ? "green" : "red" },
    point,
    safeLine(detail)
  ])
  return [
    table(["OK", "POINT", "WHY"], rows, color),
    `a run: ${boundsText(report.bounds)}`,
    `capabilities: ${listed(report.capabilities)}`,
    ...beginsText(report).map(safeLine),
    ...(report.does_not === null ? [] : [`does not: ${safeLine(report.does_not)}`])
  ].join("\n")
}

const checkText = (rows: ReadonlyArray<CheckedSkill>, color: boolean): string => {
  if (rows.length === 0) return "there is no skill file"
  return rows
    .map((row) => {
      const file = safeLine(row.file)
      if (row.problems.length > 0) return row.problems.map((problem) => `${file}: ${safeLine(problem)}`).join("\n")
      const head = `${file}: ${gradeText(row)}`
      return rows.length === 1 ? `${head}\n\n${reportText(row, color)}` : head
    })
    .join("\n")
}

/** Entries of a folder that are looked at. */
const ENTRIES_MAX = 10_000

/** The file itself, or the skills of a folder: its skill files, its SKILL.md, and those of the folders in it. */
const filesAt = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const { type } = yield* Effect.mapError(fs.lstat(path), () =>
    usageError(`there is no file or folder ${path}`, "name a skill, or the skills folder of a repository")
  )
  if (type !== "Directory") return [path]
  // A file where a folder would be has no such file in it either. A link is looked at itself, and refused when it is read.
  const kindOf = (file: string) =>
    Effect.orElseSucceed(
      Effect.map(fs.lstat(file), ({ type }): string => type),
      () => undefined
    )
  const own = join(path, SKILL_FILE)
  if ((yield* kindOf(own)) !== undefined) return [own]
  const names = (yield* fs.readDirectory(path)).sort().slice(0, ENTRIES_MAX)
  const found = yield* Effect.forEach(
    names,
    Effect.fnUntraced(function* (name) {
      const entry = join(path, name)
      if (name.endsWith(".json")) return [entry]
      const kind = yield* kindOf(entry)
      if (kind === "SymbolicLink") return (yield* kindOf(join(entry, SKILL_FILE))) === undefined ? [] : [entry]
      return (yield* kindOf(join(entry, SKILL_FILE))) === undefined ? [] : [join(entry, SKILL_FILE)]
    })
  )
  return found.flat().slice(0, IMAGE_SKILLS_MAX + 1)
})

const unreadable = (file: string, problems: ReadonlyArray<string>): CheckedSkill => ({
  file,
  ok: false,
  problems,
  ...unreadableReport(basename(file, ".json"), problems)
})

const checkFile = Effect.fnUntraced(function* (file: string, tools: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.lstat(file)
  if (type === "SymbolicLink") return unreadable(file, ["a symbolic link is refused: copy what it points to"])
  if (type !== "File") return unreadable(file, ["it is not a regular file"])
  if (size > BigInt(MANIFEST_BYTES_MAX)) return unreadable(file, [`larger than ${MANIFEST_BYTES_MAX} bytes`])
  const bytes = yield* fs.readFile(file)
  if (!isUtf8(bytes)) return unreadable(file, ["not UTF-8: save it as UTF-8"])
  const given = Buffer.from(bytes).toString("utf8")
  const name = basename(file)
  const text = (tools.length > 0 && name === SKILL_FILE ? withTools(given, tools) : undefined) ?? given
  const path = name === SKILL_FILE ? `${basename(dirname(resolve(file)))}/${name}` : name
  const { facts, schemas } = yield* skillRepository(file)
  const written = readSkillFile(path, text)
  const read = Result.flatMap(written, () => readSkillFile(path, text, { schemas }))
  // A pin without its schema is a missing point, and not a file that cannot be read.
  const spec = Result.isFailure(read) ? written : read
  if (Result.isFailure(written) || Result.isFailure(spec))
    return unreadable(file, Result.isFailure(written) ? written.failure : [])
  const report = gateReport(spec.success, { facts, schemas, written: written.success })
  return { file, ok: report.grade !== "rejected", problems: [], ...report } satisfies CheckedSkill
})

export const check = Command.make(
  "check",
  {
    path: Argument.String("path").pipe(
      Argument.withDescription("A skill file, a folder with a SKILL.md, or a folder of skills")
    ),
    tools: toolsFlag
  },
  Effect.fnUntraced(function* ({ path, tools }) {
    const named = toolNames(tools)
    const rows = yield* onHost(
      Effect.flatMap(filesAt(path), (files) => Effect.forEach(files, (file) => checkFile(file, named)))
    )
    yield* print(rows, checkText)
    if (rows.some(({ ok }) => !ok)) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(
  Command.withDescription(
    "Check skills against the nine quality criteria, without choird; a build also checks that their tools exist"
  ),
  Command.withExamples([
    { command: "choirctl skill check skills/careful_change.json" },
    { command: "choirctl skill check skills/meeting-notes" },
    { command: 'choirctl skill check downloads/pdf --tools "Read Bash"' }
  ])
)
