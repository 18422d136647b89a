/** Settings of config.json that this version does not support, as warnings for the operator. */
import type { Config } from "#schema/Config.ts"

const filled = (table: Readonly<Record<string, unknown>>) => Object.keys(table).length > 0

/** One sentence for each setting, with what happens instead. */
export const unsupportedConfig = (config: Config): ReadonlyArray<string> => {
  const features: ReadonlyArray<readonly [boolean, string]> = [
    [filled(config.tts) || filled(config.voice_profiles), "tts and voice_profiles: replies are text"],
    ...Object.entries(config.agents).flatMap(([id, { defaults }]) =>
      (["voice_profile"] as const).map(
        (key) =>
          [defaults[key] !== undefined, `agents.${id}.defaults.${key}: it is bound, and no tool uses it`] as const
      )
    )
  ]
  return features.flatMap(([used, text]) => (used ? [`${text} (this version)`] : []))
}
