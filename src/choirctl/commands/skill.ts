/** choirctl skill: what skills an agent has, and whether a file is one. */
import { basename, join } from "node:path"
import { Effect, FileSystem, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { SkillName } from "#schema/Skill.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { EXIT, Unsuccessful, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { type CheckedSkill, checkText, skillTable, skillText } from "#src/choirctl/render/skills.ts"
import { IMAGE_SKILLS_MAX } from "#src/shared/limits.ts"
import { readSkill } from "#src/shared/image/skillProblems.ts"
import { agentId } from "./arguments.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"

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
  Argument.withDescription("A skill, as choirctl skill list shows it"),
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
  Command.withDescription("Show the states of a skill, their tools and where they lead"),
  Command.withExamples([{ command: "choirctl skill show agent-1 tool-builder" }])
)

/** The file itself, or the `.json` files of a folder. */
const filesAt = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const { type } = yield* Effect.mapError(fs.stat(path), () =>
    usageError(`there is no file or folder ${path}`, "name a skill file, or the folder skills of a repository")
  )
  if (type !== "Directory") return [path]
  const names = (yield* fs.readDirectory(path)).filter((name) => name.endsWith(".json")).sort()
  return names.slice(0, IMAGE_SKILLS_MAX + 1).map((name) => join(path, name))
})

const checkFile = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(file)
  const problems =
    type !== "File"
      ? ["it is no regular file"]
      : size > BigInt(MANIFEST_BYTES_MAX)
        ? [`larger than ${MANIFEST_BYTES_MAX} bytes`]
        : Result.match(readSkill(basename(file, ".json"), yield* fs.readFileString(file)), {
            onSuccess: () => [],
            onFailure: (found) => found
          })
  return { file, ok: problems.length === 0, problems } satisfies CheckedSkill
})

const check = Command.make(
  "check",
  { path: Argument.String("path").pipe(Argument.withDescription("A skill file, or a folder of them")) },
  Effect.fnUntraced(function* ({ path }) {
    const rows = yield* onHost(Effect.flatMap(filesAt(path), (files) => Effect.forEach(files, checkFile)))
    yield* print(rows, checkText)
    if (rows.some(({ ok }) => !ok)) return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(
  Command.withDescription(
    "Check skill files without choird; whether their tools exist is looked at when an image is built"
  ),
  Command.withExamples([{ command: "choirctl skill check skills/careful_change.json" }])
)

export const skill = Command.make("skill").pipe(
  Command.withDescription("See and check the skills of agents"),
  Command.withSubcommands([list, show, check])
)
