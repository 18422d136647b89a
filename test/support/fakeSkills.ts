/** Skills and tools, and their runs, as the fake choird answers for them. */
import { Effect, Layer } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import type { SkillDetail, SkillSummary, ToolSummary } from "#schema/AgentsApi.ts"
import type { TriedSkill, TriedTool } from "#schema/ContainedTrial.ts"
import type { AddedSkill, SkillFile, SkillOffer } from "#schema/SkillOffer.ts"
import { CommitId } from "#schema/Image.ts"
import { fakeRuns } from "./fakeRuns.ts"
import { gateReport } from "#src/shared/image/skillGate.ts"
import { contractSpec, summarize } from "./contracts.ts"
import { skillSpec } from "./skills.ts"

const spec = skillSpec()

const report = gateReport(spec)

export const skillDetail: SkillDetail = { source: "image", spec, report }
/** A skill with a contract. */
const judged = contractSpec({
  ...summarize,
  input_schema: { type: "object", properties: { text: { type: "string" }, length: {} }, required: ["text"] },
  registry: { version: "1.0.0", tier: "task", triggers: [{ kind: "keyword", match: "sum up", mode: "start" }] }
})
const details: ReadonlyArray<SkillDetail> = [skillDetail, { source: "image", spec: judged, report: gateReport(judged) }]
const base64 = (text: string) => Buffer.from(text).toString("base64")
const skillFiles: ReadonlyArray<SkillFile> = [
  { path: "references/guide.md", executable: false, base64: base64("Begin with the date.\n") }
]
export const skillRows: ReadonlyArray<SkillSummary> = [
  {
    name: spec.name,
    source: "image",
    description: spec.description,
    states: 3,
    max_steps: 12,
    execution_class: "probabilistic",
    tier: null,
    grade: report.grade,
    passed: report.passed
  }
]
export const toolRows: ReadonlyArray<ToolSummary> = [
  { name: "choir.exec", source: "built-in", effect: null, exposure: null, description: null },
  {
    name: "words.count",
    source: "agent",
    version: "2.1",
    effect: "none",
    exposure: "both",
    description: "Count\nwords."
  },
  {
    name: "choir.web.search",
    source: "built-in",
    effect: "none",
    exposure: "both",
    description: "Search the web.",
    not_offered: "it has no search engine"
  }
]

const skillOffer: SkillOffer = {
  name: spec.name,
  pin: { from: "/srv/tidy", sha256: "ab".repeat(32) },
  report,
  text: "skill tidy, for the global repository\nfile skills/tidy/SKILL.md"
}
export const addedSkill: AddedSkill = {
  name: spec.name,
  pin: skillOffer.pin,
  repository: "global repository",
  commit: CommitId.make("c".repeat(40))
}

/** A call that acts outside asks first. */
const triedTool = (tool: string, confirmed: boolean): TriedTool =>
  tool.endsWith(".send") && !confirmed
    ? { type: "asks", why: "it acts outside this machine" }
    : {
        type: "ran",
        effect: tool.endsWith(".send") ? "external" : "none",
        status: tool === "choir.exec" ? "error" : "success",
        summary: "3 result(s)",
        output: { results: ["a\u001bb"] },
        sources: ["search"],
        ...(tool.endsWith(".send") ? { acted: "accepted" as const } : {}),
        duration_ms: 1200
      }

export const triedSkill: TriedSkill = {
  skill: spec.name,
  outcome: "completed",
  summary: "done",
  output: { mails: 3 },
  lines: [
    { type: "phase", state: "look", on: "start" },
    {
      type: "call",
      tool: "choir.email.check",
      input: "{}",
      status: "success",
      summary: "3 unread",
      held_back: false,
      sources: ["mail:ada@example.org"]
    },
    { type: "call", tool: "letters.send", input: "{}", status: "success", summary: "done", held_back: true },
    {
      type: "phase",
      state: "done",
      on: "complete",
      ended: "completed",
      confidence: 0.5,
      checks: [{ statement: "each mail is counted", ok: true, detail: "3" }],
      verdict: { score: 0.9, model: "second" }
    }
  ],
  left_out: 0,
  model_calls: 3,
  judge_calls: 1,
  tokens: 1200,
  cost_usd: 0.0125,
  changed: ["triage.md"],
  duration_ms: 2500
}

/** @param note is told each call. */
export const fakeSkills = (note: (name: string, id: string) => void) => Layer.merge(fakeRuns(note), skills(note))

const skills = (note: (name: string, id: string) => void) =>
  HttpApiBuilder.group(OperatorApi, "skills", (handlers) => {
    const noted = <A>(name: string, id: string, answer: A) =>
      Effect.as(
        Effect.sync(() => note(name, id)),
        answer
      )
    return Effect.succeed(
      handlers.handleAll({
        list: ({ params }) => noted("skills", params.id, skillRows),
        show: ({ params }) =>
          noted(
            `skill ${params.name}`,
            params.id,
            details.find(({ spec }) => spec.name === params.name) ?? skillDetail
          ),
        files: ({ params }) => noted(`files of ${params.name}`, params.id, skillFiles),
        offer: ({ payload: { source } }) =>
          noted(
            source.type === "git"
              ? `offer ${source.url} ${source.ref}`
              : `offer ${source.files.map(({ path }) => path).join(" ")}`,
            "",
            skillOffer
          ),
        add: ({ payload: { sha256, target } }) => noted(`add ${sha256.slice(0, 8)}`, target.type, addedSkill),
        tryTool: ({ params, payload: { confirmed = false, tool } }) =>
          noted(`try ${tool}${confirmed ? " confirmed" : ""}`, params.id, triedTool(tool, confirmed)),
        trySkill: ({ params, payload: { files, skill } }) =>
          noted(
            `try ${typeof skill === "string" ? skill : `given ${skill.name}`} on ${files.length}`,
            params.id,
            triedSkill
          ),
        tools: ({ params }) => noted("tools", params.id, toolRows)
      })
    )
  })
