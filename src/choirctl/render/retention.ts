/** What went, and what is left of sessions, for people. */
import type { ArchivedSession, DeletedSession, DiskStatus, PruneReport } from "#schema/SystemApi.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { paint } from "#src/choirctl/terminal/paint.ts"
import { safeLine } from "#src/choirctl/terminal/safeText.ts"
import { table } from "#src/choirctl/terminal/table.ts"

export const pruneText = ({ disk_free_bytes, dry_run, kinds }: PruneReport, color: boolean): string => {
  const rows = kinds.filter(({ removed }) => removed > 0)
  const free = disk_free_bytes === null ? [] : [`${bytesText(disk_free_bytes)} are free on the disk of the home`]
  if (rows.length === 0) return [dry_run ? "nothing would go" : "nothing was old enough to go", ...free].join("\n")
  const listed = table(
    ["KIND", dry_run ? "WOULD GO" : "WENT", "SIZE"],
    rows.map(({ bytes, kind, removed }) => [kind, String(removed), bytes === undefined ? "" : bytesText(bytes)]),
    color
  )
  return [listed, ...free].join("\n")
}

export const diskText = ({ free_bytes, low, paused, total_bytes }: DiskStatus, color: boolean): string => {
  const free = `${bytesText(free_bytes)} of ${bytesText(total_bytes)} free`
  if (!low) return free
  const agents = paused.length === 0 ? "" : `, paused: ${paused.join(", ")}`
  return `${paint(color, "red", "almost full")}, ${free}${agents}`
}

interface Exported {
  readonly path: string
  readonly manifest: string
  readonly session_id: string
  readonly events: number
  readonly head: string
  readonly bytes: number
}

export const exportedText = ({ bytes, events, head, manifest, path, session_id }: Exported): string =>
  [
    `${path}: ${events} events of ${session_id}, ${bytesText(bytes)}, head ${head}`,
    `${manifest}: what it holds; check it with: node verify.mjs ${session_id} < ${path}`
  ].join("\n")

export const archivedText = ({ bytes, head, last_rev, path, session_id }: ArchivedSession): string =>
  `${session_id} is archived: ${last_rev} events, head ${head}, ${bytesText(bytes)} in ${safeLine(path)}`

export const deletedText = ({ head, last_rev, session_id }: DeletedSession): string =>
  `${session_id} is deleted. On record: its last revision ${last_rev} with the hash ${head}`
