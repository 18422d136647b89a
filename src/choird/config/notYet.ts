/** What config.json may say and this version does not do: an operator is told, and never left to find out. */
import type { Config } from "#schema/Config.ts"

const filled = (table: Readonly<Record<string, unknown>>) => Object.keys(table).length > 0

/** One sentence for each, with what happens instead. */
export const notYet = (config: Config): ReadonlyArray<string> => {
  const features: ReadonlyArray<readonly [boolean, string]> = [
    [config.embedding !== undefined, "embedding: there is no memory search"],
    [filled(config.search), "search: there is no web search"],
    [filled(config.tts), "tts and voice_profiles: replies are text"],
    [filled(config.notion_integrations), "notion_integrations: there is no Notion tool"],
    [filled(config.email_accounts), "email_accounts: there is no e-mail tool"]
  ]
  return features.flatMap(([used, text]) => (used ? [`${text} (this version)`] : []))
}
