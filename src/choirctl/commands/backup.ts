/** choirctl backup: a whole home in one file. */
import { resolve } from "node:path"
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Contents, contentsText } from "#src/choirctl/backup/contentsText.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { printAdvice, type Progress, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirmReplaced, passphraseFlag, passphraseOf, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { requirePlace } from "#src/choirctl/commands/flags/arguments.ts"

/** The limit of a file without a passphrase. */
const UNPROVED =
  "It has no passphrase: its digests show damage, but not a change by somebody who can write the file. --passphrase-stdin adds one."

const backupText = (made: Contents & { readonly path: string; readonly bytes: number }): string =>
  [
    `${made.path}: ${bytesText(made.bytes)}, as of ${made.created_at}`,
    `Included: ${contentsText(made)}.`,
    "Not included:",
    ...made.left_out.map((line) => `  ${safeLine(line)}`),
    ...(made.secrets.sealed ? [] : ["", UNPROVED])
  ].join("\n")

/** A passphrase if the backup has secrets or if one is piped: it proves a file without secrets as well. */
const passphraseFor = Effect.fnUntraced(function* (home: string, piped: boolean, without: boolean) {
  if (!piped) {
    if (without) return undefined
    const { secretNames } = yield* Effect.promise(() => import("#src/choirctl/home/secretsFile.ts"))
    if ((yield* secretNames(home)).length === 0) return undefined
  }
  return yield* passphraseOf("new", piped, {
    problem: "the secrets need a passphrase",
    fix: "pass the passphrase on standard input with --passphrase-stdin, or add --without-secrets"
  })
})

export const backup = Command.make(
  "backup",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("File to write, such as choir.tar.gz"),
      Argument.map((path) => resolve(path))
    ),
    workspaces: Flag.Boolean("workspaces").pipe(
      Flag.withDescription("Include the files of the home's workspaces"),
      Flag.withDefault(false)
    ),
    without_archives: Flag.Boolean("without-archives").pipe(
      Flag.withDescription("Leave out archived sessions, whose files are their only copy"),
      Flag.withDefault(false)
    ),
    without_secrets: Flag.Boolean("without-secrets").pipe(
      Flag.withDescription("Include only the names of secrets, not their values"),
      Flag.withDefault(false)
    ),
    passphrase_stdin: passphraseFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ file, passphrase_stdin, without_archives, without_secrets, workspaces, yes }) {
    const { home } = yield* root
    const screen = yield* Screen
    const given = [
      ...(workspaces ? ["--workspaces"] : []),
      ...(without_archives ? ["--without-archives"] : []),
      ...(without_secrets ? ["--without-secrets"] : []),
      ...(passphrase_stdin ? ["--passphrase-stdin"] : [])
    ]
    const { requireHome } = yield* Effect.promise(() => import("#src/choirctl/home/homeFiles.ts"))
    yield* requireHome(home)
    yield* requirePlace(file)
    yield* confirmReplaced(file, yes, ["choirctl backup", ...given].join(" "))
    const passphrase = yield* passphraseFor(home, passphrase_stdin, without_secrets)
    const { backupHome } = yield* Effect.promise(() => import("#src/choirctl/backup/backupHome.ts"))
    const { broken, bytes, damaged, manifest } = yield* backupHome<Progress>({
      home,
      file,
      version: VERSION,
      workspaces,
      archives: !without_archives,
      secrets: !without_secrets,
      passphrase,
      // The copy of the database shows how far it is by itself.
      step: (name) => (work) => (name === "copying the database" ? work : withProgress(name)(work))
    })
    for (const { reason, session_id } of broken)
      yield* screen.note(`warning: session ${session_id} does not verify: ${safeLine(reason)}`)
    for (const { reason, session_id } of damaged)
      yield* screen.note(
        `warning: archived session ${session_id} is damaged: ${reason}. Restore the file from an earlier backup`
      )
    const { members: _, ...contents } = manifest
    yield* printAdvice({ ok: true, path: file, bytes, ...contents, broken, damaged_archives: damaged }, backupText)
  }, onHost)
).pipe(
  Command.withExamples([
    { command: "choirctl backup choir.tar.gz" },
    { command: "choirctl backup choir.tar.gz --workspaces --passphrase-stdin < passphrase.txt" }
  ])
)
