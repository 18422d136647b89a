/** The voice of a chat: which answers it hears, and in which profile of config.json. */
import { Effect } from "effect"
import { Models } from "#src/choird/agents/Models.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { ChatSettings, type VoiceMode } from "./ChatSettings.ts"
import type { Answer } from "./Answer.ts"
import { refusedAnswer } from "./refusedAnswer.ts"
import type { Speaker } from "./Speaker.ts"
import type { Command } from "./readCommand.ts"

type VoiceCommand = Extract<Command, { readonly type: "voice" | "voice mode" | "set voice" }>

const MODES: Readonly<Record<VoiceMode, string>> = {
  on: "All answers come as voice notes.",
  mirror: "Answers to voice messages come as voice notes.",
  off: "Answers come as texts."
}

const notice = (text: string): Answer => ({ kind: "notice", text })
const refusal = (text: string): Answer => ({ kind: "refusal", text })

/** Carries out what a chat says about voices. */
export const makeChatVoice = Effect.gen(function* () {
  const config = yield* ConfigStore
  const models = yield* Models
  const settings = yield* ChatSettings

  const noVoice = Effect.map(config.current, ({ config: { voice_profiles } }) => {
    const names = Object.keys(voice_profiles)
    return names.length === 0
      ? "There is no voice in config.json (voice_profiles)."
      : `The agent has no voice yet. Send /voice and one of: ${names.join(", ")}`
  })

  return Effect.fnUntraced(function* (command: VoiceCommand, { agent_id, dm, gateway }: Speaker) {
    if (command.type === "set voice") {
      const { voice_profile } = command
      const set = yield* Effect.result(models.set(agent_id, `gateway:${gateway}`, { voice_profile }))
      if (set._tag === "Failure") return refusedAnswer(set.failure)
      return notice(`The agent speaks as ${voice_profile} from now on, until it is started again.`)
    }
    const { voice_profile } = yield* Effect.orDie(models.get(agent_id))
    if (command.type === "voice mode") {
      if (voice_profile === null && command.mode !== "off") return refusal(yield* noVoice)
      yield* databaseDefect(settings.setVoice(dm, command.mode))
      return notice(MODES[command.mode])
    }
    const mode = MODES[yield* databaseDefect(settings.voice(dm))]
    return notice(
      voice_profile === null ? `${mode} ${yield* noVoice}` : `${mode} The agent speaks as ${voice_profile}.`
    )
  })
})
