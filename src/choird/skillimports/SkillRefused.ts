/** The refusal of a skill from elsewhere, which changed nothing. */
import { Schema } from "effect"

export class SkillRefused extends Schema.TaggedError<SkillRefused>()("SkillRefused", {
  /**
   * `UNREACHABLE`: its source cannot be read. `BAD_SKILL`: it was read and is refused, with each problem by path. `CHANGED`: it is not the one
   * that the person saw. `UNKNOWN_AGENT` and `REPOSITORY`: it cannot be added there.
   */
  kind: Schema.Literals(["UNREACHABLE", "BAD_SKILL", "CHANGED", "UNKNOWN_AGENT", "REPOSITORY"]),
  reason: Schema.String,
  hint: Schema.String
}) {
  override get message() {
    return `${this.reason}. ${this.hint}`
  }
}

export const unreachable = ({ message }: { readonly message: string }) =>
  new SkillRefused({ kind: "UNREACHABLE", reason: message, hint: "correct the address, then add it again" })

export const badSkill = (reason: string, hint = "correct these files at their source, then add it again") =>
  new SkillRefused({ kind: "BAD_SKILL", reason, hint })

export const repositoryRefused = ({ message }: { readonly message: string }) =>
  new SkillRefused({ kind: "REPOSITORY", reason: message, hint: "correct the repository, then add it again" })
