/** choirctl prune: removes at once what is older than config.json keeps it. */
import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import type { PruneReport } from "#schema/SystemApi.ts"
import { askStream, followProgress } from "#src/choirctl/client/ask.ts"
import { EXIT, failed, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"

export const prune = Command.make(
  "prune",
  {
    dry_run: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Show what would be removed, and remove nothing"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ dry_run }) {
    let doing = "looking for old data"
    const report = yield* followProgress(
      askStream("retention", (choird) => choird.prune({ payload: { dry_run } })),
      failed("PRUNE_BROKE_OFF", "choird exited before pruning finished", "choirctl prune"),
      (text) => Effect.sync(() => void (doing = `pruning ${text}`))
    ).pipe(withProgress(() => doing))
    yield* print(report, pruneText)
    if (report.kinds.some(({ problem }) => problem !== undefined))
      return yield* new Unsuccessful({ exit_code: EXIT.failed })
  })
).pipe(Command.withExamples([{ command: "choirctl prune --dry-run" }]))

export const pruneText = ({ disk_free_bytes, dry_run, kinds }: PruneReport, color: boolean): string => {
  const rows = kinds.filter(({ removed }) => removed > 0)
  const kept = kinds.flatMap(({ kind, problem }) =>
    problem === undefined ? [] : [`${kind}, ${dry_run ? "not counted" : "not all pruned"}: ${safeLine(problem)}`]
  )
  const free = disk_free_bytes === null ? [] : [`${bytesText(disk_free_bytes)} free on the home's disk`]
  const nothing = dry_run ? "nothing would be removed" : "nothing was old enough to remove"
  if (rows.length === 0) return [...(kept.length > 0 ? kept : [nothing]), ...free].join("\n")
  const listed = table(
    ["KIND", dry_run ? "WOULD REMOVE" : "REMOVED", "SIZE"],
    rows.map(({ bytes, kind, removed }) => [kind, String(removed), bytes === undefined ? "" : bytesText(bytes)]),
    color
  )
  return [listed, ...kept, ...free].join("\n")
}
