/** choirctl backup: the whole home in one file. */
import { resolve } from "node:path"
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { confirmReplaced, yesFlag } from "#src/choirctl/terminal/confirm.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { passphraseFlag, passphraseOf } from "#src/choirctl/terminal/passphrase.ts"
import { printAdvice } from "#src/choirctl/terminal/print.ts"
import { type Progress, withProgress } from "#src/choirctl/terminal/progress.ts"
import { backupText } from "#src/choirctl/render/backup.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { VERSION } from "#src/shared/program/version.ts"

/** Nothing where there is nothing to seal, or the secrets stay out. */
const passphraseFor = Effect.fnUntraced(function* (home: string, piped: boolean, without: boolean) {
  if (without) return undefined
  const { secretNames } = yield* Effect.promise(() => import("#src/choirctl/home/secretsFile.ts"))
  if ((yield* secretNames(home)).length === 0) return undefined
  return yield* passphraseOf("new", piped, "the secrets need a passphrase")
})

export const backup = Command.make(
  "backup",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("Where to write the backup, such as choir.tar.gz"),
      Argument.map((path) => resolve(path))
    ),
    workspaces: Flag.Boolean("workspaces").pipe(
      Flag.withDescription("Include the files in the workspaces of the home"),
      Flag.withDefault(false)
    ),
    without_archives: Flag.Boolean("without-archives").pipe(
      Flag.withDescription("Leave out archived sessions, whose files are their only copy"),
      Flag.withDefault(false)
    ),
    without_secrets: Flag.Boolean("without-secrets").pipe(
      Flag.withDescription("List only the names of secrets, not their values"),
      Flag.withDefault(false)
    ),
    passphrase_stdin: passphraseFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ file, passphrase_stdin, without_archives, without_secrets, workspaces, yes }) {
    const { home } = yield* root
    const screen = yield* Screen
    yield* confirmReplaced(file, yes, "choirctl backup")
    const passphrase = yield* passphraseFor(home, passphrase_stdin, without_secrets)
    const { backupHome } = yield* Effect.promise(() => import("#src/choirctl/backup/backupHome.ts"))
    const { broken, bytes, damaged, manifest } = yield* backupHome<Progress>({
      home,
      file,
      version: VERSION,
      workspaces,
      archives: !without_archives,
      passphrase,
      // The copy of the database shows how far it is by itself.
      step: (name) => (work) => (name === "copying the database" ? work : withProgress(name)(work))
    })
    for (const { reason, session_id } of broken)
      yield* screen.note(`warning: the session ${session_id} does not verify: ${safeLine(reason)}`)
    for (const { reason, session_id } of damaged)
      yield* screen.note(
        `warning: the archived session ${session_id} is not sound: ${reason}. Put the file back from an earlier backup`
      )
    const { members: _, ...contents } = manifest
    yield* printAdvice({ ok: true, path: file, bytes, ...contents, broken, damaged_archives: damaged }, backupText)
  }, onHost)
).pipe(
  Command.withDescription("Write the whole home into one file, while agents work or without choird"),
  Command.withExamples([
    { command: "choirctl backup choir.tar.gz" },
    { command: "choirctl backup choir.tar.gz --workspaces --passphrase-stdin < passphrase.txt" }
  ])
)
