/** The contents of a backup as a text. */
import type { Manifest } from "#src/choirctl/backup/manifest.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"

export type Contents = Omit<Manifest, "members">

const counted = (count: number, one: string, many = `${one}s`) => `${count} ${count === 1 ? one : many}`

const secretsLine = ({ names, sealed, values = sealed }: Contents["secrets"]) => {
  if (names.length === 0) return "no secrets"
  return values ? `${counted(names.length, "secret")}, sealed` : `the names of ${counted(names.length, "secret")}`
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

/** The contents of a backup in one line. */
export const contentsText = (found: Contents) =>
  parts(found)
    .map((part) => safeLine(part))
    .join("; ")
