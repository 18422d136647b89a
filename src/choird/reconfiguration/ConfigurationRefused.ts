/** The refusal to load, apply or roll back a configuration; the running one stays. */
import { Schema } from "effect"
import { type ConfigRefused } from "#src/shared/config/configFiles.ts"
import { problemsOf, problemText, type Problem } from "#src/shared/config/configProblems.ts"

/** Problems that a refused `config load` reports, from the first. */
const CONFIG_PROBLEMS_MAX = 200

/** `problems` are paths of config.json, secrets.json or a repository, each with its reason and without a value. */
export class ConfigurationRefused extends Schema.TaggedError<ConfigurationRefused>()("ConfigurationRefused", {
  kind: Schema.Literals(["BUSY", "CHANGED", "CONFIG", "NO_SUCH_VERSION", "NOT_READY", "NOTHING_STAGED"]),
  reason: Schema.String,
  hint: Schema.String,
  problems: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String }))
}) {
  override get message() {
    return this.reason
  }
}

/** A key that several forms require is reported by each of them. */
const once = (problems: ReadonlyArray<Problem>) => [
  ...new Map(problems.map((problem) => [problemText(problem), problem])).values()
]

export const refuse = (
  kind: ConfigurationRefused["kind"],
  reason: string,
  hint: string,
  problems: ReadonlyArray<Problem> = []
) => new ConfigurationRefused({ kind, reason, hint, problems: once(problems).slice(0, CONFIG_PROBLEMS_MAX) })

export const fromConfigRefused = ({ file, hint, problems }: ConfigRefused) =>
  refuse("CONFIG", `${file} cannot be used`, hint, problemsOf(problems))
