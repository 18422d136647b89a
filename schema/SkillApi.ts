/** The skills and tools of an agent, as `choirctl skill` and `choirctl tool` print them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { ApiErrors } from "./ApiError.ts"
import { AgentId } from "./Ids.ts"
import { SkillName, SkillSpec } from "./Skill.ts"

/** Whether it comes with every agent or with the agent's image. */
const SkillSource = Schema.Literals(["built-in", "image"])

/** A row of `skill list`. */
export const SkillSummary = Schema.Struct({
  name: SkillName,
  source: SkillSource,
  description: Schema.String,
  states: Schema.Natural,
  max_steps: Schema.Natural
})
export type SkillSummary = typeof SkillSummary.Type

export const SkillDetail = Schema.Struct({ source: SkillSource, spec: SkillSpec })
export type SkillDetail = typeof SkillDetail.Type

/** A row of `tool list`. Of a built-in tool choird knows the name; the rest is in the agent's program (docs/tools.md). */
export const ToolSummary = Schema.Struct({
  name: Schema.String,
  source: Schema.Literals(["built-in", "global", "agent"]),
  effect: Schema.NullOr(Schema.String),
  exposure: Schema.NullOr(Schema.String),
  description: Schema.NullOr(Schema.String)
})
export type ToolSummary = typeof ToolSummary.Type

const agent = { id: AgentId } as const

export const SkillApi = HttpApiGroup.make("skills").add(
  HttpApiEndpoint.get("list", "/agents/:id/skills", {
    params: agent,
    success: Schema.Array(SkillSummary),
    error: ApiErrors
  }),
  HttpApiEndpoint.get("show", "/agents/:id/skills/:name", {
    params: { ...agent, name: SkillName },
    success: SkillDetail,
    error: ApiErrors
  }),
  HttpApiEndpoint.get("tools", "/agents/:id/tools", {
    params: agent,
    success: Schema.Array(ToolSummary),
    error: ApiErrors
  })
)
