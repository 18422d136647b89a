/** choirctl prune, and choirctl session export, archive and delete: how long data is kept. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { ArchivedSession, DeletedSession, PruneReport } from "#schema/SystemApi.ts"
import { ask, askStream, followProgress } from "#src/choirctl/client/ask.ts"
import { EXIT, failed, Unsuccessful } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { safeLine, table } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { plural } from "#src/shared/text/counts.ts"
import { reasoning, sessionName, sessionOf } from "./flags/arguments.ts"

/** choirctl prune: removes at once what is older than config.json keeps it. */
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

interface Exported {
  readonly path: string
  readonly manifest: string
  readonly session_id: string
  readonly events: number
  readonly head: string
  readonly bytes: number
}

const exportedText = ({ bytes, events, head, manifest, path, session_id }: Exported): string =>
  [
    `${path}: ${plural(events, "event")} of ${session_id}, ${bytesText(bytes)}, head ${head}`,
    `${manifest}: its manifest; to verify the events, save verify.mjs from docs/log.md: node verify.mjs ${session_id} < ${path}`
  ].join("\n")

const archivedText = ({ bytes, head, last_rev, path, session_id }: ArchivedSession): string =>
  `${session_id} is archived: ${plural(last_rev, "event")}, head ${head}, ${bytesText(bytes)} in ${safeLine(path)}`

const deletedText = ({ head, last_rev, session_id }: DeletedSession): string =>
  `${session_id} is deleted. Kept on record: last revision ${last_rev}, hash ${head}`

export const exportEvents = Command.make(
  "export",
  {
    name: sessionName,
    file: Argument.String("file").pipe(
      Argument.withDescription("File to write; default: <session-id>.jsonl in this folder"),
      Argument.optional
    ),
    reasoning
  },
  Effect.fnUntraced(function* ({ file, name, reasoning: isWhole }) {
    const id = yield* sessionOf(name)
    const { exportSession } = yield* Effect.promise(() => import("#src/choirctl/backup/exportSession.ts"))
    const path = Option.getOrElse(file, () => `${id}.jsonl`)
    const exported = yield* onHost(exportSession(id, path, isWhole)).pipe(withProgress(`exporting ${id}`))
    yield* print(exported, exportedText)
  })
).pipe(
  Command.withDescription("Write a session's events as JSON lines, with a manifest beside them"),
  Command.withExamples([{ command: "choirctl session export 0k8v3w9m2p1n4q7r ada.jsonl" }])
)

export const archive = Command.make(
  "archive",
  { name: sessionName },
  Effect.fnUntraced(function* ({ name }) {
    const id = yield* sessionOf(name)
    const archived = yield* ask("retention", (choird) => choird.archive({ params: { id } })).pipe(
      withProgress(`archiving ${id}`)
    )
    yield* print(archived, archivedText)
  })
).pipe(
  Command.withDescription("Move an ended session's events from the database to a compressed file in the home"),
  Command.withExamples([{ command: "choirctl session archive 0k8v3w9m2p1n4q7r" }])
)

export const remove = Command.make(
  "delete",
  { name: sessionName, yes: yesFlag },
  Effect.fnUntraced(function* ({ name, yes }) {
    const id = yield* sessionOf(name)
    if (!yes) {
      const { agent_id, last_rev, started_at, status } = yield* ask("session", (choird) =>
        choird.show({ params: { id } })
      )
      if (status === "active")
        return yield* failed(
          "SESSION_ACTIVE",
          `the session ${id} of ${agent_id} is running`,
          `choirctl agent stop ${agent_id}`
        )
      yield* confirm({
        yes,
        about: [
          `The session ${id} of ${agent_id} began ${started_at} and has ${last_rev} events. All of them will be deleted.`,
          "Its id, last revision and last hash stay on record. choirctl session export keeps a copy of the rest."
        ],
        ask: `Delete ${id}?`,
        command: `choirctl session delete ${id} --yes`
      })
    }
    const deleted = yield* ask("retention", (choird) => choird.delete({ params: { id } })).pipe(
      withProgress(`deleting ${id}`)
    )
    yield* print(deleted, deletedText)
  })
).pipe(
  Command.withDescription("Delete an ended session and its texts; its id, last revision and last hash stay on record"),
  Command.withExamples([{ command: "choirctl session delete 0k8v3w9m2p1n4q7r" }])
)
