/** choirctl restore: a home from its backup. */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Contents, contentsText } from "#src/choirctl/backup/contentsText.ts"
import type { Found } from "#src/choirctl/backup/restoreHome.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, type Progress, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, passphraseFlag, passphraseOf, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { safeLine, safeText } from "#src/choirctl/terminal/text.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { requireFile } from "./flags/arguments.ts"

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

/** The passphrase of sealed secrets, unless they are left out. */
const givenPassphrase = ({ manifest }: Found, piped: boolean, without: boolean) =>
  !manifest.secrets.sealed || without
    ? Effect.undefined
    : passphraseOf("given", piped, "the secrets in the backup are sealed")

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
      Flag.withDescription("Leave out the sealed secrets and list their names"),
      Flag.withDefault(false)
    ),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Restore sessions even if they do not verify"),
      Flag.withDefault(false)
    ),
    passphrase_stdin: passphraseFlag,
    yes: yesFlag
  },
  Effect.fnUntraced(function* ({ file, force, passphrase_stdin, to, without_secrets, yes }) {
    const { home } = yield* root
    yield* requireFile(file, "choirctl backup")
    const agree = Effect.fnUntraced(function* (found: Found) {
      if (found.occupied)
        yield* confirm({
          yes,
          about: [foundText(file, found), `${found.home} exists. It will be moved aside and kept.`],
          ask: "Replace it with the backup?",
          command: `choirctl restore ${shellQuoted(file)} --to ${shellQuoted(found.home)} --yes`
        })
      return yield* givenPassphrase(found, passphrase_stdin, without_secrets)
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
