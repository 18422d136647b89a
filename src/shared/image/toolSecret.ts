/** The meaning of a name in a manifest's `secret_resources`: one rule for the agent and for the build of its image. */
import { Result } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import type { SecretName } from "#schema/Ids.ts"

const modelSecret = ({ models }: AgentConfig, name: AgentConfig["llm"]) =>
  Object.hasOwn(models, name) ? models[name]?.secret : undefined

/** The bound model's secret for `llm` and `core_llm`, the identity's for `git_identity`, otherwise the one of that name; or why it is missing. */
export const toolSecret = (name: SecretName, config: AgentConfig): Result.Result<SecretName, string> => {
  if (name === "git_identity" && config.git_identity !== undefined) return Result.succeed(config.git_identity.secret)
  const model = name === "llm" ? config.llm : name === "core_llm" ? config.core_llm : undefined
  if (model === undefined) return Result.succeed(name)
  const secret = modelSecret(config, model)
  return secret === undefined ? Result.fail(`the model ${model} has none`) : Result.succeed(secret)
}
