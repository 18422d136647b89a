/** choirctl skill try: a skill from its start to its end, without an agent and without an effect outside. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Option, Result } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { ResourceName } from "#schema/Ids.ts"
import { SkillName } from "#schema/Skill.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { skillFolderFiles, TRIED } from "#src/choirctl/home/skillFolderFiles.ts"
import { skillRepository } from "#src/choirctl/home/skillRepository.ts"
import { triedSkillText } from "#src/choirctl/render/trials.ts"
import { EXIT, failed, Unsuccessful, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { readSkillFile } from "#src/shared/image/skillFile.ts"
import { SKILL_FILE } from "#src/shared/image/skillFolder.ts"
import { MANIFEST_BYTES_MAX } from "#src/shared/image/toolManifest.ts"
import { inputOf } from "#src/choirctl/commands/flags/inputOf.ts"
import { agentFlag, agentOf, inputFlag } from "#src/choirctl/commands/flags/tryFlags.ts"

/** The skill file at a path, or the SKILL.md of the folder there. */
const fileAt = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const found = yield* Effect.option(fs.stat(path))
  if (Option.isNone(found)) return undefined
  return found.value.type === "Directory" ? join(path, SKILL_FILE) : path
})

const readGiven = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const fix = "name a skill file, or a folder with a SKILL.md"
  const { size, type } = yield* Effect.mapError(fs.stat(file), () => usageError(`there is no file ${file}`, fix))
  if (type !== "File" || size > BigInt(MANIFEST_BYTES_MAX))
    return yield* usageError(`${file} is not a skill's file`, fix)
  const name = basename(file)
  const path = name === SKILL_FILE ? `${basename(dirname(resolve(file)))}/${name}` : name
  const { schemas } = yield* skillRepository(file)
  const read = readSkillFile(path, yield* fs.readFileString(file), { schemas })
  if (Result.isSuccess(read)) return read.success
  return yield* failed(
    "BAD_SKILL",
    read.failure.map((problem) => `${file}: ${safeLine(problem)}`).join("\n"),
    `choirctl skill check ${file}`
  )
})

const isName = (text: string) => /^[a-z0-9][a-z0-9._-]{0,63}$/u.test(text)

/** A path that is there, with the other files of its folder, or else a name in the agent's image. */
const skillOf = Effect.fnUntraced(function* (given: string) {
  const file = yield* fileAt(given)
  if (file !== undefined) {
    const skill = yield* readGiven(file)
    const folder = basename(file) === SKILL_FILE ? yield* skillFolderFiles(dirname(resolve(file)), TRIED) : []
    const references = folder.filter(({ path }) => path !== SKILL_FILE)
    return { skill, ...(references.length === 0 ? {} : { references }) }
  }
  if (isName(given)) return { skill: SkillName.make(given) }
  return yield* usageError(
    `there is no file or folder ${given}`,
    "name a skill of the agent, a skill file, or a folder with a SKILL.md"
  )
})

export const skillTry = Command.make(
  "try",
  {
    skill: Argument.String("skill").pipe(
      Argument.withDescription("A skill of the agent, a skill file, or a folder with a SKILL.md")
    ),
    input: inputFlag("skill"),
    model: Flag.String("model").pipe(
      Flag.withDescription("Model that does the work, instead of the agent's own for jobs"),
      Flag.withSchema(ResourceName),
      Flag.optional
    ),
    files: Flag.String("files").pipe(
      Flag.withDescription("A folder that the trial works on a copy of; without it the workspace is empty"),
      Flag.withMetavar("<folder>"),
      Flag.optional
    ),
    agent: agentFlag
  },
  Effect.fnUntraced(function* ({ agent, files, input, model, skill: given }) {
    const named = yield* skillOf(given)
    const payload = {
      ...named,
      ...(Option.isSome(input) ? { input: yield* inputOf(input.value) } : {}),
      ...(Option.isSome(model) ? { model: model.value } : {}),
      files: Option.isSome(files) ? yield* skillFolderFiles(files.value, TRIED) : []
    }
    const id = yield* agentOf(agent)
    const name = typeof named.skill === "string" ? named.skill : named.skill.name
    const tried = yield* ask("skills", (choird) => choird.trySkill({ params: { id }, payload })).pipe(
      withProgress(`trying ${name}`)
    )
    yield* print(tried, triedSkillText)
    // Nothing but the input can be wrong before a model was asked.
    if (
      tried.outcome !== "completed" &&
      tried.model_calls === 0 &&
      Option.isNone(input) &&
      typeof named.skill === "string"
    )
      yield* (yield* Screen).note(
        `hint: choirctl skill show ${id} ${name} lists its input; give it with --input '{"…":"…"}'`
      )
    if (tried.outcome !== "completed") return yield* new Unsuccessful({ exit_code: EXIT.failed })
  }, onHost)
).pipe(
  Command.withDescription(
    "Try a skill without an agent: reads are real, writes go to a copy, and nothing outside is changed"
  ),
  Command.withExamples([
    { command: `choirctl skill try open-questions.json --input '{"folder":"."}' --files notes` },
    { command: `choirctl skill try summarize --input '{"path":"notes.md"}' --files notes --model haiku` }
  ])
)
