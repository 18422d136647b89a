/** Why a configuration is not loaded, applied or gone back to; what ran goes on to run. */
import { Schema } from "effect"
import { type ConfigRefused } from "#src/shared/configFiles.ts"
import { problemsOf, type Problem } from "#src/shared/configProblems.ts"
import { CONFIG_PROBLEMS_MAX } from "#src/shared/limits.ts"

/** `problems` are paths of config.json, secrets.json or a repository, each with its reason and without a value. */
export class ConfigurationRefused extends Schema.TaggedError<ConfigurationRefused>()("ConfigurationRefused", {
  kind: Schema.Literals(["BUSY", "CONFIG", "NO_SUCH_VERSION", "NOT_READY", "NOTHING_STAGED"]),
  reason: Schema.String,
  hint: Schema.String,
  problems: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String }))
}) {
  override get message() {
    return this.reason
  }
}

export const refuse = (
  kind: ConfigurationRefused["kind"],
  reason: string,
  hint: string,
  problems: ReadonlyArray<Problem> = []
) => new ConfigurationRefused({ kind, reason, hint, problems: problems.slice(0, CONFIG_PROBLEMS_MAX) })

export const fromConfigRefused = ({ file, hint, problems }: ConfigRefused) =>
  refuse("CONFIG", `${file} cannot be used`, hint, problemsOf(problems))
