/** choirctl skill export: a skill as a folder that other harnesses read. */
import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { Effect, FileSystem } from "effect"
import { Argument, Command } from "effect/cli"
import { SkillName } from "#schema/Skill.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { skillMarkdown } from "#src/shared/image/skillExport.ts"
import { SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { agentId } from "./arguments.ts"

export const exported = Command.make(
  "export",
  {
    id: agentId,
    name: Argument.String("skill").pipe(
      Argument.withDescription("Skill name from choirctl skill list"),
      Argument.withSchema(SkillName)
    ),
    folder: Argument.String("dir").pipe(Argument.withDescription("Folder in which the skill's folder is made"))
  },
  Effect.fnUntraced(function* ({ folder, id, name }) {
    const { spec } = yield* ask("skills", (choird) => choird.show({ params: { id, name } }))
    const place = join(resolve(folder), name)
    if (existsSync(place)) return yield* usageError(`${place} exists`, "name another folder, or remove it")
    const file = join(place, SKILL_FILE)
    yield* onHost(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        yield* fs.makeDirectory(place, { recursive: true })
        yield* fs.writeFileString(file, skillMarkdown(spec), { flag: "wx" })
      })
    )
    yield* print({ file }, ({ file }) => `wrote ${file}`)
  })
).pipe(
  Command.withDescription("Write a skill as a folder with a SKILL.md, which other harnesses read"),
  Command.withExamples([{ command: "choirctl skill export agent-1 careful_change ./exported" }])
)
