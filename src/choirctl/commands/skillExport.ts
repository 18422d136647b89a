/** choirctl skill export: a skill as a folder that other agent programs can load. */
import { existsSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect, FileSystem } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SkillName } from "#schema/Skill.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { exportLosses, skillMarkdown } from "#src/choirctl/render/skillMarkdown.ts"
import { SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { agentId } from "#src/choirctl/commands/flags/arguments.ts"

export const exported = Command.make(
  "export",
  {
    id: agentId,
    name: Argument.String("skill").pipe(
      Argument.withDescription("Skill name from choirctl skill list"),
      Argument.withSchema(SkillName)
    ),
    folder: Argument.String("dir").pipe(Argument.withDescription("Folder in which the skill's folder is made")),
    as_text: Flag.Boolean("as-text").pipe(
      Flag.withDescription("Write the steps as plain text only, without what a SKILL.md cannot hold"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ as_text, folder, id, name }) {
    const { source, spec } = yield* ask("skills", (choird) => choird.show({ params: { id, name } }))
    const found = source === "built-in" ? [] : yield* ask("skills", (choird) => choird.files({ params: { id, name } }))
    // The folder's own SKILL.md says more than one that is made of the skill.
    const own = found.some(({ path }) => path === SKILL_FILE)
    const losses = own || as_text ? [] : exportLosses(spec)
    if (losses.length > 0)
      return yield* failed(
        "NOT_WHOLE",
        [`a SKILL.md cannot hold all of ${name}:`, ...losses.map((loss) => `- ${safeLine(loss)}`)].join("\n"),
        `copy skills/${name}.json to another Choir, or write its steps as text with --as-text`
      )
    const made = { path: SKILL_FILE, bytes: Buffer.from(skillMarkdown(spec)) }
    const files = [
      ...(own ? [] : [made]),
      ...found.map(({ base64, path }) => ({ path, bytes: Buffer.from(base64, "base64") }))
    ]
    const place = join(resolve(folder), name)
    if (existsSync(place)) return yield* usageError(`${place} exists`, "name another folder, or remove it")
    const file = join(place, SKILL_FILE)
    yield* onHost(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        for (const { bytes, path } of files) {
          const to = join(place, path)
          yield* fs.makeDirectory(dirname(to), { recursive: true })
          yield* fs.writeFile(to, bytes, { flag: "wx" })
        }
      })
    )
    yield* print({ file, files: files.length }, ({ file, files }) =>
      files === 1 ? `wrote ${file}` : `wrote ${file} and ${files - 1} more`
    )
  })
).pipe(
  Command.withDescription("Write a skill as a folder with a SKILL.md that other agent programs can load"),
  Command.withExamples([
    { command: "choirctl skill export agent-1 todo-flagger ./exported" },
    { command: "choirctl skill export agent-1 meeting-notes ./exported --as-text" }
  ])
)
