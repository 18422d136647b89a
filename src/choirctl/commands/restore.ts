/** choirctl restore: a home from its backup. */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Contents, contentsText } from "#src/choirctl/backup/contentsText.ts"
import type { Found } from "#src/choirctl/backup/restoreHome.ts"
import { failed, usageError } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, type Progress, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, passphraseFlag, passphraseOf, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine, safeText } from "#src/choirctl/terminal/text.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { requireFile } from "#src/choirctl/commands/flags/arguments.ts"

/** A backup in one line, before somebody decides about it. */
const foundText = (file: string, { manifest }: Found): string =>
  `${file} is a backup of ${safeLine(manifest.home)} from ${safeLine(manifest.created_at)}: ${contentsText(manifest)}.`

interface Restored {
  readonly home: string
  readonly aside: string | undefined
  readonly unset: ReadonlyArray<string>
  readonly database_command: string | undefined
  readonly agents: ReadonlyArray<string>
  readonly moved: boolean
  readonly backup: Contents
}

/** The commands after a restore, in their order. */
const next = (
  agents: ReadonlyArray<string>,
  unset: ReadonlyArray<string>,
  database_command: string | undefined
): ReadonlyArray<string> => [
  ...unset.map((name) => `choirctl secret set ${name}`),
  ...(database_command === undefined ? [] : [safeText(database_command)]),
  "choirctl daemon start",
  ...agents.map((agent) => `choirctl agent build ${agent} && choirctl agent start ${agent}`)
]

export const restoredHomeText = ({ agents, aside, backup, database_command, home, moved, unset }: Restored): string => {
  return [
    `restored ${home}, as of ${safeLine(backup.created_at)}: ${contentsText(backup)}.`,
    ...(moved
      ? [
          `Paths below ${safeLine(backup.home)} now lead to ${home}.`,
          `If ${safeLine(backup.home)} is still in use, run only one of the two: they use the same bots and the same database server.`
        ]
      : []),
    ...(aside === undefined ? [] : [`The previous home is ${aside}. To delete it: rm -rf ${shellQuoted(aside)}`]),
    "",
    "Next:",
    ...next(agents, unset, database_command).map((command) => `  ${onHome(home, command)}`)
  ].join("\n")
}

/** The passphrase that proves a sealed file, unless the operator takes the file without proof. */
const givenPassphrase = Effect.fnUntraced(function* (
  file: string,
  { manifest }: Found,
  { passphrase_stdin, unproved }: { readonly passphrase_stdin: boolean; readonly unproved: boolean }
) {
  const screen = yield* Screen
  const unchanged = `nothing proves that ${file} is as it was made`
  if (!manifest.secrets.sealed) {
    if (passphrase_stdin)
      return yield* failed(
        "UNSEALED",
        `${file} has no seal that a passphrase could open: it was made without one, or somebody removed it. Nothing was changed`,
        "if it was made with a passphrase, do not use this file"
      )
    yield* screen.note(`warning: ${unchanged}: it has no passphrase, and its digests show only damage`)
    return undefined
  }
  if (!unproved)
    return yield* passphraseOf("given", passphrase_stdin, {
      problem: "the backup is sealed with a passphrase, which also proves that nobody changed the file",
      fix: "pass the passphrase on standard input with --passphrase-stdin"
    })
  yield* screen.note(
    `warning: ${unchanged}: its passphrase was not tried. Read its config.json before you start choird`
  )
  return undefined
})

export const restore = Command.make(
  "restore",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("Backup made by choirctl backup"),
      Argument.map((path) => resolve(path))
    ),
    to: Flag.String("to").pipe(
      Flag.withDescription("Home to create; default: --home or CHOIR_HOME"),
      Flag.withMetavar("<folder>"),
      Flag.optional
    ),
    without_secrets: Flag.Boolean("without-secrets").pipe(
      Flag.withDescription(
        "Leave out the values of the secrets and list their names; the passphrase is still asked for"
      ),
      Flag.withDefault(false)
    ),
    unproved: Flag.Boolean("unproved").pipe(
      Flag.withDescription("Without the passphrase: restore a file that anybody may have changed, without its secrets"),
      Flag.withDefault(false)
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Restore sessions even if they do not verify"),
      Flag.withDefault(false)
    ),
    passphrase_stdin: passphraseFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ file, force, passphrase_stdin, to, unproved, without_secrets, yes }) {
    const { home } = yield* root
    if (unproved && passphrase_stdin)
      return yield* usageError("--unproved and --passphrase-stdin exclude each other", "leave out --unproved")
    yield* requireFile(file, "choirctl backup")
    const agree = Effect.fnUntraced(function* (found: Found) {
      if (found.occupied)
        yield* confirm({
          yes,
          about: [foundText(file, found), `${found.home} exists. It will be moved aside and kept.`],
          ask: "Replace it with the backup?",
          command: `choirctl restore ${shellQuoted(file)} --to ${shellQuoted(found.home)} --yes`
        })
      const passphrase = yield* givenPassphrase(file, found, { passphrase_stdin, unproved })
      return { passphrase, secrets: !without_secrets }
    })
    const { restoreHome } = yield* Effect.promise(() => import("#src/choirctl/backup/restoreHome.ts"))
    type Agreed = ReturnType<typeof agree>
    const done = yield* restoreHome<Effect.Error<Agreed>, Effect.Services<Agreed> | Progress>({
      home: Option.match(to, { onNone: () => home, onSome: (path) => resolve(path) }),
      file,
      force,
      agree,
      step: withProgress
    })
    const { manifest, ...rest } = done
    const { members: _, ...contents } = manifest
    yield* print({ ok: true, path: file, ...rest, backup: contents }, restoredHomeText)
  }, onHost)
).pipe(
  Command.withExamples([
    { command: "choirctl restore choir.tar.gz" },
    { command: "choirctl restore choir.tar.gz --to /srv/choir --passphrase-stdin < passphrase.txt" }
  ])
)
