/**
 * The changes that an agent may propose and a person decides on. A proposal is data: outside of its rehearsal nothing of it runs, is written or takes effect
 * before it is approved, and then choird alone carries it out. Each kind is the input of the tool `choir.propose.<kind>` as well as the payload of
 * its approval.
 */
import { Schema } from "effect"
import { SessionId } from "./Ids.ts"
import { CommitId } from "./Image.ts"
import { ToolManifest } from "./Tool.ts"

export const ProposalKind = Schema.Literals(["tool", "skill", "config_change", "repo_change"])
export type ProposalKind = typeof ProposalKind.Type

/** A sentence for the person. It is shown as the agent's own words and proves nothing. */
const Reason = Schema.NonEmptyString.check(Schema.isMaxLength(2000)).annotate({
  description: "Why, in a sentence or two for the person who decides"
})

/** A text file of the agent's repository. Where it may lie depends on what it belongs to. */
export const ProposedFile = Schema.Struct({
  path: Schema.NonEmptyString.check(Schema.isMaxLength(200)).annotate({
    description: "tools/<tool name> for the executable, tools/<tool name>/... for everything else"
  }),
  content: Schema.String.annotate({ description: "The whole text of the file" }),
  executable: Schema.optionalKey(Schema.Boolean.annotate({ description: "Whether it may be executed" }))
})
export type ProposedFile = typeof ProposedFile.Type

/** A tool by its manifest, with its source where the agent wrote one: a person reads all of it before it can become a tool. */
export const ProposedTool = Schema.Struct({
  manifest: ToolManifest,
  files: Schema.optionalKey(
    Schema.Array(ProposedFile)
      .check(Schema.isMaxLength(32))
      .annotate({ description: "The executable and what else belongs to the tool" })
  ),
  reason: Reason
})
export type ProposedTool = typeof ProposedTool.Type

/** A skill by its state machine, which is checked as those of images are. */
export const ProposedSkill = Schema.Struct({
  spec: Schema.Record(Schema.String, Schema.Json).annotate({
    description: "The SkillSpec: its states, their tools and transitions"
  }),
  reason: Reason
})
export type ProposedSkill = typeof ProposedSkill.Type

/** One change of config.json: a JSON pointer (RFC 6901) and what is to be there. */
export const ConfigEdit = Schema.Struct({
  op: Schema.Literals(["set", "remove"]).annotate({ description: "set puts a value there, remove takes it away" }),
  path: Schema.String.check(
    Schema.isPattern(/^(?:\/[a-z0-9_-]+){1,6}$/u, { message: "a path looks like /budgets/turn_max_steps" })
  ).annotate({ description: "A JSON pointer, such as /budgets/turn_max_steps" }),
  value: Schema.optionalKey(
    Schema.Union([Schema.String.check(Schema.isMaxLength(200)), Schema.Finite, Schema.Null]).annotate({
      description: "The new value; only for set"
    })
  )
}).check(
  Schema.makeFilter(({ op, value }) =>
    (op === "set") === (value !== undefined)
      ? undefined
      : { path: ["value"], issue: "set needs a value, and remove has none" }
  )
)
export type ConfigEdit = typeof ConfigEdit.Type

export const ProposedConfigChange = Schema.Struct({
  change: Schema.Array(ConfigEdit)
    .check(Schema.isMinLength(1), Schema.isMaxLength(16))
    .annotate({ description: "The changes, in their order" }),
  reason: Reason
})
export type ProposedConfigChange = typeof ProposedConfigChange.Type

/** Where an agent pushes what it proposes: a branch of its own session in its own repository. */
export const ProposalBranch = Schema.String.check(
  Schema.isPattern(/^proposal\/[0-9a-hjkmnp-tv-z]{16}\/[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/u, {
    message: "a branch is proposal/<session id>/<a-z, 0-9 and ->"
  })
)

/** The session that a branch belongs to. */
export const sessionOfBranch = (branch: string): SessionId => SessionId.make(branch.split("/")[1] ?? "")

export const ProposedRepoChange = Schema.Struct({
  branch: ProposalBranch.annotate({ description: "proposal/<session id>/<description>, pushed to your repository" }),
  commit: CommitId.annotate({ description: "The full id of the branch's newest commit" }),
  reason: Reason
})
export type ProposedRepoChange = typeof ProposedRepoChange.Type
