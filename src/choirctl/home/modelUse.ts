/** The command by which an agent takes another model for good. */
import { Effect } from "effect"
import { Config } from "#schema/Config.ts"
import type { ResourceName } from "#schema/Ids.ts"
import { configPath } from "#src/choirctl/terminal/root.ts"
import { decodeFile } from "#src/shared/config/decode.ts"
import { readConfigText } from "./homeFiles.ts"

/** Of an agent; a reader puts in the name of one where several may be meant, and of a model that is still to be chosen. */
export const useModel = (agents: ReadonlyArray<string>, model: ResourceName | undefined): string =>
  `choirctl model set ${agents.length === 1 ? agents[0] : "<agent-id>"} --llm ${model ?? "<name>"} --default`

/** For the only agent of a home. */
export const modelUse = Effect.fnUntraced(function* (home: string, model: ResourceName) {
  const { text } = yield* readConfigText(home)
  const { agents } = yield* decodeFile(Config)(configPath(home), text)
  return useModel(Object.keys(agents), model)
})
