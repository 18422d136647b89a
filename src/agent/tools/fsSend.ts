/** choir.fs.send: files of the workspace to the person, as documents, photos, videos or voice notes. */
import { Effect, Schema } from "effect"
import { SENT_FILES_MAX } from "#schema/SentFile.ts"
import { LockRequest } from "#schema/Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { fileNameOf, takeForSending } from "./sendFolder.ts"
import { decodeInput, lockOn, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

/** Copies of ten files of the largest size take their time. */
const SEND_MS_MAX = 60_000
/** Characters below a file: what Telegram shows there. */
const CAPTION_CHARS_MAX = 1024

const Input = Schema.Struct({
  paths: Schema.Array(Schema.String)
    .check(Schema.isMinLength(1), Schema.isMaxLength(SENT_FILES_MAX))
    .annotate({ description: "Paths in the workspace" }),
  caption: Schema.optionalKey(
    Schema.String.check(Schema.isMaxLength(CAPTION_CHARS_MAX)).annotate({ description: "Shown below them" })
  ),
  as_document: Schema.optionalKey(Schema.Boolean.annotate({ description: "Pictures and sounds as plain files" }))
})
type Input = typeof Input.Type

export const fsSend: Effect.Effect<Tool, never, Workspace> = Effect.gen(function* () {
  const workspace = yield* Workspace
  const decode = decodeInput(Input)

  const send = Effect.fn("fsSend.send")(function* ({ as_document = false, caption, paths }: Input) {
    const taken = yield* Effect.forEach([...new Set(paths)], (path) => takeForSending(workspace, path))
    const files = taken.map((file) => (as_document ? { ...file, as: "document" as const } : file))
    const outcome: ToolOutcome = {
      status: "success",
      summary: `sent to the user: ${files.map(({ path }) => fileNameOf(path)).join(", ")}`,
      sends: { files, ...(caption === undefined || caption.trim() === "" ? {} : { caption }) }
    }
    return outcome
  })

  return {
    llm: llmView("choir.fs.send", "Send files to the user.", Input),
    // Only the result sends them, so that a call which runs again after a crash sends them once.
    effect: "none",
    lanes: "both",
    prepare: Effect.fn("fsSend.prepare")(function* (raw) {
      const input = yield* decode(raw)
      const locks = yield* Effect.forEach(input.paths, (path) => lockOn(path, "S"))
      const files = locks.filter(({ resource }) => resource !== "choirtmp")
      return {
        locks: [...files, LockRequest.make({ resource: "choirtmp", mode: "X" })],
        timeout_ms: SEND_MS_MAX,
        run: () => Effect.catch(send(input), (error) => Effect.succeed(refusal(error)))
      }
    })
  }
})
