/** choirctl session export, archive and delete: where a session's events are kept. */
import { Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { ask } from "#src/choirctl/client/ask.ts"
import { confirm, yesFlag } from "#src/choirctl/terminal/confirm.ts"
import { onHost } from "#src/choirctl/terminal/Host.ts"
import { print } from "#src/choirctl/terminal/print.ts"
import { withProgress } from "#src/choirctl/terminal/progress.ts"
import { archivedText, deletedText, exportedText } from "#src/choirctl/render/retention.ts"
import { sessionName, sessionOf } from "./arguments.ts"

export const exportEvents = Command.make(
  "export",
  {
    name: sessionName,
    file: Argument.String("file").pipe(
      Argument.withDescription("The file to write; <session-id>.jsonl in this folder when it is absent"),
      Argument.optional
    )
  },
  Effect.fnUntraced(function* ({ file, name }) {
    const id = yield* sessionOf(name)
    const { exportSession } = yield* Effect.promise(() => import("#src/choirctl/backup/exportSession.ts"))
    const path = Option.getOrElse(file, () => `${id}.jsonl`)
    const exported = yield* onHost(exportSession(id, path)).pipe(withProgress(`exporting ${id}`))
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
  Command.withDescription("Move an ended session's events out of the database into a compressed file of the home"),
  Command.withExamples([{ command: "choirctl session archive 0k8v3w9m2p1n4q7r" }])
)

export const remove = Command.make(
  "delete",
  { name: sessionName, yes: yesFlag },
  Effect.fnUntraced(function* ({ name, yes }) {
    const id = yield* sessionOf(name)
    if (!yes) {
      const { agent_id, last_rev, started_at } = yield* ask("session", (choird) => choird.show({ params: { id } }))
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
