/** choirctl session export, archive and delete: how long a session is kept. */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import type { ArchivedSession, DeletedSession } from "#schema/SystemApi.ts"
import { ask } from "#src/choirctl/client/ask.ts"
import { failed } from "#src/choirctl/terminal/failure.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print, withProgress } from "#src/choirctl/terminal/print.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/questions.ts"
import { safeLine } from "#src/choirctl/terminal/text.ts"
import { bytesText } from "#src/shared/text/bytesText.ts"
import { plural } from "#src/shared/text/counts.ts"
import { reasoning, sessionName, sessionOf } from "#src/choirctl/commands/flags/arguments.ts"

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
