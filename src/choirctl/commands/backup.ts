/** choirctl backup and restore: a whole home in one file, and back. */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { Manifest } from "#src/choirctl/backup/manifest.ts"
import type { Found } from "#src/choirctl/backup/restoreHome.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, printAdvice, type Progress, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, confirmReplaced, passphraseFlag, passphraseOf, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { root } from "#src/choirctl/terminal/root.ts"
import { Screen } from "#src/choirctl/terminal/Screen.ts"
import { safeLine, safeText } from "#src/choirctl/terminal/text.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { VERSION } from "#src/shared/program/version.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { requireFile, requirePlace } from "./flags/arguments.ts"

type Contents = Omit<Manifest, "members">

const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`

const secretsLine = ({ names, sealed }: Contents["secrets"]) => {
  if (names.length === 0) return "no secrets"
  return sealed ? `${counted(names.length, "secret")}, sealed` : `the names of ${counted(names.length, "secret")}`
}

const parts = ({ archived, database, secrets, sources, workspaces }: Contents): ReadonlyArray<string> => [
  `${counted(database.sessions, "session")} with ${counted(database.events, "event")}`,
  ...(archived === undefined || archived.sessions === 0
    ? []
    : [`the files of ${counted(archived.sessions, "archived session")} (${bytesText(archived.bytes)})`]),
  "config.json",
  secretsLine(secrets),
  ...(sources.length === 0
    ? ["no repositories"]
    : [`${counted(sources.length, "repository", "repositories")} (${sources.map(({ path }) => path).join(", ")})`]),
  ...workspaces.map(
    ({ bytes, entries, name }) =>
      `workspace ${name} (${counted(entries, "file or folder", "files and folders")}, ${bytesText(bytes)})`
  )
]

const contents = (found: Contents) =>
  parts(found)
    .map((part) => safeLine(part))
    .join("; ")

const backupText = (made: Contents & { readonly path: string; readonly bytes: number }): string =>
  [
    `${made.path}: ${bytesText(made.bytes)}, as of ${made.created_at}`,
    `Included: ${contents(made)}.`,
    "Not included:",
    ...made.left_out.map((line) => `  ${safeLine(line)}`)
  ].join("\n")

/** A backup in one line, before somebody decides about it. */
const foundText = (file: string, { manifest }: Found): string =>
  `${file} is a backup of ${safeLine(manifest.home)} from ${safeLine(manifest.created_at)}: ${contents(manifest)}.`

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
    `restored ${home}, as of ${safeLine(backup.created_at)}: ${contents(backup)}.`,
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

/** A passphrase for the secrets, if the backup has any. */
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
