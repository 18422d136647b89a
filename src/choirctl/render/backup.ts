/** What `choirctl backup` and `restore` did, for people. */
import type { Found } from "#src/choirctl/backup/restoreHome.ts"
import type { Manifest } from "#src/choirctl/backup/manifest.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { onHome } from "#src/shared/files/homeFolder.ts"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"
import { safeLine, safeText } from "#src/choirctl/terminal/safeText.ts"

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

export const backupText = (made: Contents & { readonly path: string; readonly bytes: number }): string =>
  [
    `${made.path}: ${bytesText(made.bytes)}, as of ${made.created_at}`,
    `In it: ${contents(made)}.`,
    "Not in it:",
    ...made.left_out.map((line) => `  ${safeLine(line)}`)
  ].join("\n")

/** A backup in one line, before somebody decides about it. */
export const foundText = (file: string, { manifest }: Found): string =>
  `${file} is of ${safeLine(manifest.home)}, as of ${safeLine(manifest.created_at)}: ${contents(manifest)}.`

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
    ...(moved ? [`Paths below ${safeLine(backup.home)} now lead to ${home}.`] : []),
    ...(aside === undefined ? [] : [`The previous home is ${aside}. To delete it: rm -rf ${shellQuoted(aside)}`]),
    "",
    "Next:",
    ...next(agents, unset, database_command).map((command) => `  ${onHome(home, command)}`)
  ].join("\n")
}
