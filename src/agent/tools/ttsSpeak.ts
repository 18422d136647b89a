/** choir.tts.speak: a text as a voice note to the person. The sound goes out as every file of a tool does. */
import { Effect, Result, Schema } from "effect"
import { SEND_FOLDER } from "#schema/SentFile.ts"
import type { CallId } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import { llmView } from "#src/agent/model/llmView.ts"
import { makeSpeak, SPEECH_CHARS_MAX, SPEECH_MS_MAX } from "#src/agent/outside/Speech.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { counted } from "#src/shared/text/counts.ts"
import { takeForSending } from "./sendFolder.ts"
import { decodeInput, refusal, type Tool, type ToolOutcome } from "./Tool.ts"

const Input = Schema.Struct({
  text: Schema.String.check(
    Schema.isPattern(/\S/u, { message: "text must have words to say" }),
    Schema.isMaxLength(SPEECH_CHARS_MAX)
  ).annotate({ description: "What to say: plain words, no Markdown" })
})

export const ttsSpeak = Effect.gen(function* () {
  const speak = yield* makeSpeak
  const workspace = yield* Workspace
  const decode = decodeInput(Input)

  const run = Effect.fn("ttsSpeak.run")(function* ({ text }: typeof Input.Type, call_id: CallId) {
    const { bytes, cost_usd, ending } = yield* speak(text)
    const path = `${SEND_FOLDER}/voice-${call_id}.${ending}`
    yield* workspace.update(path, () => Result.succeed(bytes))
    const outcome: ToolOutcome = {
      status: "success",
      summary: `said to the user: ${counted(text.length)} characters`,
      sends: { files: [yield* takeForSending(workspace, path)] },
      ...(cost_usd === undefined ? {} : { cost_usd })
    }
    return outcome
  })

  const tool: Tool = {
    llm: llmView("choir.tts.speak", "Say a text to the user as a voice note.", Input),
    // Only the result sends it, so that a call which runs again after a crash is heard once.
    effect: "none",
    lanes: "both",
    prepare: Effect.fn("ttsSpeak.prepare")(function* (raw) {
      const input = yield* decode(raw)
      return {
        locks: [LockRequest.make({ resource: "choirtmp", mode: "X" })],
        timeout_ms: 3 * SPEECH_MS_MAX,
        run: ({ call_id }) => Effect.catch(run(input, call_id), (error) => Effect.succeed(refusal(error)))
      }
    })
  }
  return tool
})
