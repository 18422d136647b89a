/** A proposal as choird understands it: strictly decoded, with the payload as it was written. Pure. */
import { Result, Schema } from "effect"
import {
  type ConfigEdit,
  ProposedConfigChange,
  ProposedRepoChange,
  ProposedSkill,
  ProposedTool
} from "#schema/ProposedChange.ts"
import type { ProposalKind } from "#schema/ProposedChange.ts"
import { SkillName } from "#schema/Skill.ts"
import { decodeBounded } from "#src/shared/image/boundedJson.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { API_PROBLEM_CHARS_MAX } from "#src/shared/limits.ts"

export type Proposal =
  /** `written` is the manifest as the agent wrote it, without the defaults that decoding fills in. */
  | { readonly kind: "tool"; readonly tool: ProposedTool; readonly written: Schema.Json }
  | { readonly kind: "skill"; readonly name: string; readonly skill: ProposedSkill }
  | { readonly kind: "config_change"; readonly edits: ReadonlyArray<ConfigEdit>; readonly reason: string }
  | { readonly kind: "repo_change"; readonly repo: ProposedRepoChange }

const decodeTool = decodeBounded(ProposedTool)
const decodeSkill = decodeBounded(ProposedSkill)
const decodeName = Schema.decodeUnknownResult(Schema.Struct({ name: SkillName }))
const decodeConfigChange = decodeBounded(ProposedConfigChange)
const decodeRepoChange = decodeBounded(ProposedRepoChange)

const writtenManifest = (payload: Schema.Json): Schema.Json =>
  typeof payload === "object" && payload !== null && "manifest" in payload ? (payload["manifest"] ?? null) : null

/** The name of a proposed skill, which is read as its file would be: the states of a script follow from its workflow. */
const skillName = ({ spec }: ProposedSkill): Result.Result<SkillName, { readonly message: string }> =>
  Result.flatMap(decodeName(spec), ({ name }) =>
    Result.mapBoth(readSkill(name, JSON.stringify(spec)), {
      onFailure: (problems) => ({ message: problems.join("; ") }),
      onSuccess: () => name
    })
  )

const decoded = (kind: ProposalKind, payload: Schema.Json): Result.Result<Proposal, { readonly message: string }> => {
  const bytes = JSON.stringify(payload).length
  switch (kind) {
    case "tool":
      return Result.map(decodeTool(payload, bytes), (tool) => ({ kind, tool, written: writtenManifest(payload) }))
    case "skill":
      return Result.flatMap(decodeSkill(payload, bytes), (skill) =>
        Result.map(skillName(skill), (name) => ({ kind, name, skill }))
      )
    case "config_change":
      return Result.map(decodeConfigChange(payload, bytes), ({ change, reason }) => ({ kind, edits: change, reason }))
    case "repo_change":
      return Result.map(decodeRepoChange(payload, bytes), (repo) => ({ kind, repo }))
  }
}

/** Decodes the payload of a proposal, or says what is wrong with it. */
export const understandProposal = (kind: ProposalKind, payload: Schema.Json): Result.Result<Proposal, string> =>
  Result.mapError(decoded(kind, payload), ({ message }) =>
    `the payload is not a valid ${kind}: ${message}`.slice(0, API_PROBLEM_CHARS_MAX)
  )

/** The subject, in characters that its schema allows: safe in a message, a commit and a note to a model. */
export const proposalTitle = (proposal: Proposal): string => {
  switch (proposal.kind) {
    case "tool":
      return `tool ${proposal.tool.manifest.llm.name}`
    case "skill":
      return `skill ${proposal.name}`
    case "config_change":
      return `config_change ${proposal.edits.map(({ path }) => path).join(" ")}`
    case "repo_change":
      return `repo_change ${proposal.repo.branch}`
  }
}

/** The agent's reason for it. */
export const reasonOf = (proposal: Proposal): string => {
  switch (proposal.kind) {
    case "tool":
      return proposal.tool.reason
    case "skill":
      return proposal.skill.reason
    case "config_change":
      return proposal.reason
    case "repo_change":
      return proposal.repo.reason
  }
}
