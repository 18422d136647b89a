/** The operator's endpoints about the skills and tools of an agent's newest image, and the runs of its skills and jobs. */
import { Cause, Context, Effect, Exit, Option, Ref, type Schema, FileSystem } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { TrySkill, TryTool } from "#schema/AgentsApi.ts"
import type { AgentId } from "#schema/Ids.ts"
import type { TriedTool } from "#schema/ContainedTrial.ts"
import type { SkillFile } from "#schema/SkillOffer.ts"
import type { SkillSpec } from "#schema/Skill.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { defaultBindings } from "#src/choird/images/imageSecrets.ts"
import {
  imageReports,
  imageSkillFiles,
  imageSkills,
  imageTools,
  imageProfiles
} from "#src/choird/images/ImageFolder.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { Lifecycle } from "#src/choird/agents/Lifecycle.ts"
import { skillModel } from "#src/choird/agents/skillModel.ts"
import { type DatabaseAway, databaseDefect } from "#src/choird/database/DatabaseAway.ts"
import { agentConfig } from "#src/choird/config/agentShare.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { pricedBounds } from "#src/shared/image/skillBounds.ts"
import { gateReport } from "#src/shared/image/skillGate.ts"
import type { BuiltInTool } from "#schema/BuiltInTool.ts"
import { BUILT_IN_ROWS } from "#src/shared/image/builtInTools.ts"
import { pathInside } from "#src/shared/image/workspacePath.ts"
import {
  badRequest,
  fromSkillRefused,
  fromTrialRefused,
  notFound,
  conflict,
  fromAgentRefused
} from "#src/choird/api/refusals.ts"
import { Audit } from "#src/choird/logs/Audit.ts"
import { SkillImports } from "#src/choird/skillimports/SkillImports.ts"
import { SkillTrials } from "#src/choird/trials/SkillTrials.ts"
import { unbound } from "#src/choird/trials/toolOffer.ts"
import { ToolTrials } from "#src/choird/trials/ToolTrials.ts"
import { TrialRefused } from "#src/choird/trials/TrialRefused.ts"
import type { TrialFile } from "#src/choird/trials/TrialContainers.ts"
import { Runs } from "#src/choird/sessions/Runs.ts"
import { Images } from "#src/choird/images/Images.ts"

const build = (id: AgentId) => `choirctl agent build ${id}`

/** The reader of agents' newest images: `read` is given the image's path. */
const newestImage = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const images = yield* Images
  const lifecycle = yield* Lifecycle
  return Effect.fnUntraced(function* <A, E extends { readonly message: string }>(
    id: AgentId,
    read: (path: string) => Effect.Effect<A, E, FileSystem.FileSystem>
  ) {
    yield* Effect.mapError(lifecycle.view(id), fromAgentRefused)
    const { path } = yield* Effect.mapError(images.current(id), ({ message }) =>
      notFound("NO_IMAGE", message, build(id))
    )
    return yield* read(path).pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.mapError(({ message }) => conflict("IMAGE_DRIFT", message, `${build(id)} --force`))
    )
  })
})

/** Files for an empty workspace: plain paths below it. */
const trialFiles = (files: ReadonlyArray<SkillFile>): Effect.Effect<ReadonlyArray<TrialFile>, string> => {
  const outside = files.find(({ path }) => pathInside(path) !== path || path === "")
  return outside === undefined
    ? Effect.succeed(
        files.map(({ base64, executable, path }) => ({ path, executable, bytes: Buffer.from(base64, "base64") }))
      )
    : Effect.fail(`${JSON.stringify(outside.path)} is not a path within a workspace`)
}

const builtInTool =
  (reasonOf: (name: string) => string | undefined) =>
  ([name, { effect, lanes, sentence: description }]: readonly [string, BuiltInTool]) => {
    const not_offered = reasonOf(name)
    return {
      name,
      source: "built-in" as const,
      effect,
      exposure: lanes,
      description,
      ...(not_offered === undefined ? {} : { not_offered })
    }
  }

/** Why an agent lacks a built-in tool, as it runs or as its next start without flags would be. */
const makeNotOffered = Effect.gen(function* () {
  const config = yield* ConfigStore
  const lifecycle = yield* Lifecycle
  return Effect.fnUntraced(function* (id: AgentId) {
    const { config: running } = yield* config.current
    const view = yield* Effect.option(lifecycle.view(id))
    const bindings = (Option.isSome(view) ? view.value.bindings : null) ?? defaultBindings(running, id)
    if (bindings === undefined) return () => undefined
    const share = agentConfig(running, bindings, id)
    return (name: string) => unbound(name, id, running.agents[id], share)?.[0]
  })
})

/** How a call that had begun ended, for its audit row. One that only asked has called nothing. */
const outcomeOf = (exit: Exit.Exit<TriedTool, TrialRefused | DatabaseAway>): Readonly<Record<string, Schema.Json>> => {
  if (Exit.isSuccess(exit))
    return exit.value.type === "asks"
      ? { refused: "NOT_CONFIRMED", asks: exit.value.why }
      : { outcome: "done", status: exit.value.status }
  if (Cause.hasInterruptsOnly(exit.cause)) return { outcome: "interrupted" }
  const failure = Cause.squash(exit.cause)
  return { outcome: "failed", error: failure instanceof TrialRefused ? failure.kind : "INTERNAL" }
}

/** Tries a tool, with audit rows for its beginning and its end. */
const tryTool = Effect.fn("OperatorApi.tryTool")(function* (id: AgentId, payload: typeof TryTool.Type) {
  const audit = yield* Audit
  const toolTrials = yield* ToolTrials
  const { confirmed = false, input, tool } = payload
  const record = (detail: Readonly<Record<string, Schema.Json>>) =>
    audit.record({ who: "operator", action: "tool.try", agent_id: id, detail: { tool, confirmed, ...detail } })
  const begun = yield* Ref.make(false)
  // A call whose client goes away may have acted: it has its row before it begins, and another one when it ends.
  const begins = Effect.andThen(record({ outcome: "begun" }), Ref.set(begun, true))
  const run = toolTrials.run({ agent_id: id, tool, input, confirmed, begins })
  const audited = Effect.onExit(run, (exit) =>
    Effect.flatMap(Ref.get(begun), (has) => (has ? record(outcomeOf(exit)) : Effect.void))
  )
  return yield* Effect.mapError(databaseDefect(audited), fromTrialRefused)
})

/** Tries a skill, and audits how that ended. */
const trySkill = Effect.fn("OperatorApi.trySkill")(function* (id: AgentId, payload: typeof TrySkill.Type) {
  const audit = yield* Audit
  const skillTrials = yield* SkillTrials
  const { files, ...trial } = payload
  const given = yield* Effect.mapError(trialFiles(files), badRequest)
  yield* Effect.mapError(trialFiles(payload.references ?? []), badRequest)
  const tried = yield* Effect.mapError(skillTrials.run({ agent_id: id, ...trial, files: given }), fromTrialRefused)
  const { cost_usd = 0, outcome, skill } = tried
  yield* audit.record({
    who: "operator",
    action: "skill.try",
    agent_id: id,
    detail: { skill, outcome, cost_usd }
  })
  return tried
})

export const layerOperatorSkills = HttpApiBuilder.group(
  OperatorApi,
  "skills",
  Effect.fnUntraced(function* (handlers) {
    const config = yield* ConfigStore
    const audit = yield* Audit
    const imports = yield* SkillImports
    const fromImage = yield* newestImage
    const notOffered = yield* makeNotOffered
    const provide = Effect.provideContext(
      Context.pick(Audit, SkillTrials, ToolTrials)(yield* Effect.context<Audit | SkillTrials | ToolTrials>())
    )
    /** Each skill with the gate's report of its build, and with what a run could cost by the models of now. */
    const all = Effect.fnUntraced(function* (id: AgentId) {
      const own = yield* fromImage(id, imageSkills)
      const reports = yield* fromImage(id, imageReports)
      const model = skillModel((yield* config.current).config, id)
      const reported = (source: "built-in" | "image") => (spec: SkillSpec) => {
        const found = source === "image" ? reports.find(({ name }) => name === spec.name) : undefined
        const report = found ?? gateReport(spec)
        return { source, spec, report: { ...report, bounds: pricedBounds(report.bounds, model) } }
      }
      return [...BUILT_IN_SKILLS.map(reported("built-in")), ...own.map(reported("image"))]
    })

    return handlers.handleAll({
      list: Effect.fn("OperatorApi.listSkills")(function* ({ params: { id } }) {
        return (yield* all(id)).map(({ report, source, spec: { description, max_steps, name, states } }) => ({
          name,
          source,
          description,
          states: Object.keys(states).length,
          max_steps,
          execution_class: report.execution_class,
          tier: report.tier,
          grade: report.grade,
          passed: report.passed
        }))
      }),
      show: Effect.fn("OperatorApi.showSkill")(function* ({ params: { id, name } }) {
        const found = (yield* all(id)).find(({ spec }) => spec.name === name)
        if (found === undefined)
          return yield* notFound("UNKNOWN_SKILL", `${id} has no skill ${name}`, `choirctl skill list ${id}`)
        return found
      }),
      files: Effect.fn("OperatorApi.skillFiles")(function* ({ params: { id, name } }) {
        return yield* fromImage(id, (path) => imageSkillFiles(path, name))
      }),
      offer: ({ payload }) => Effect.mapError(imports.offer(payload), fromSkillRefused),
      add: Effect.fn("OperatorApi.addSkill")(function* ({ payload }) {
        const added = yield* Effect.mapError(imports.add(payload), fromSkillRefused)
        const { commit, name, pin } = added
        yield* audit.record({ who: "operator", action: "skill.add", detail: { skill: name, commit, ...pin } })
        return added
      }),
      tryTool: ({ params: { id }, payload }) => provide(tryTool(id, payload)),
      trySkill: ({ params: { id }, payload }) => provide(trySkill(id, payload)),
      tools: Effect.fn("OperatorApi.listTools")(function* ({ params: { id } }) {
        const own = yield* fromImage(id, imageTools)
        const reasonOf = yield* notOffered(id)
        return [...Array.from(BUILT_IN_ROWS, builtInTool(reasonOf)), ...own]
      })
    })
  })
)

/** Runs that are listed where the request names no number. */
const RUNS_LISTED = 50

const wanted = (last: number | undefined) => Math.max(1, Math.trunc(last ?? RUNS_LISTED))

export const layerOperatorRuns = HttpApiBuilder.group(
  OperatorApi,
  "runs",
  Effect.fnUntraced(function* (handlers) {
    const runs = yield* Runs
    const newest = yield* newestImage
    return handlers.handleAll({
      skills: ({ params: { id }, query: { last, skill } }) =>
        databaseDefect(runs.skills(id, { last: wanted(last), ...(skill === undefined ? {} : { skill }) })),
      jobs: ({ params: { id }, query: { last, orphans } }) =>
        databaseDefect(runs.jobs(id, { last: wanted(last), orphans: orphans === "true" })),
      profiles: Effect.fn("OperatorApi.listProfiles")(function* ({ params: { id } }) {
        const profiles = yield* newest(id, imageProfiles)
        const histories = yield* databaseDefect(runs.history(id))
        return profiles.map((profile) => ({ profile, history: histories[profile.agent_type] ?? null }))
      })
    })
  })
)
