/** The skills of docker/starter: each has all nine points, and runs to its end as an image brings it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result, Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { EmailAccount } from "#schema/EmailAccount.ts"
import { SecretName } from "#schema/Ids.ts"
import { type SkillSpec, type SkillState, skillState } from "#schema/Skill.ts"
import { packageFolder } from "#src/shared/files/packageFolder.ts"
import { toolsOf } from "#src/shared/image/contractProblems.ts"
import { readSkill } from "#src/shared/image/skillFile.ts"
import { gateReport } from "#src/shared/image/skillGate.ts"
import { skillList } from "#src/agent/model/prompt/skillPrompt.ts"
import { SKILL_LIST, SKILL_START } from "#src/agent/model/offeredTools.ts"
import { BUILT_IN_SKILLS } from "#src/shared/image/builtInSkills.ts"
import { isScript } from "#src/shared/image/scriptStates.ts"
import { BUILT_IN_FACTS, manifestFacts } from "#src/shared/image/toolFacts.ts"
import { readToolManifest } from "#src/shared/image/toolManifest.ts"
import type { Message } from "#src/shared/model/Conversation.ts"
import { makeMemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import { calls, inOrder, says, type Said, type Script } from "../support/testing/ScriptedModel.ts"
import { agentConfig, ofType, quiet, runAgent, spoken, testTool, ticking } from "../support/testing/TestAgent.ts"
import { bookOf } from "../support/skills.ts"

const STARTER = join(packageFolder, "docker/starter")
const read = (path: string) => readFileSync(join(STARTER, path), "utf8")

const specs = readdirSync(join(STARTER, "skills")).map((file): SkillSpec => {
  const name = file.slice(0, -".json".length)
  return Result.getOrThrowWith(readSkill(name, read(`skills/${file}`)), (problems) => new Error(problems.join("; ")))
})

const manifest = Result.getOrThrow(readToolManifest("global", read("tools/clock.now.json"))).manifest
const FACTS = new Map([...BUILT_IN_FACTS, ["clock.now", manifestFacts(manifest)] as const])

/** Outputs of tools that a script takes parts of. */
const OUTPUTS: Readonly<Record<string, Schema.Json>> = {
  "choir.fs.search": { matches: [{ path: "a.ts", line: 1, text: "TODO" }], truncated: false },
  "choir.fs.find": { paths: ["a.tar.gz"], truncated: false }
}

/** Inputs of the examples; a script has none, and takes texts. */
const inputOf = ({ contract, input_schema }: SkillSpec): Schema.Json => {
  const [anchor] = contract?.golden_anchors ?? []
  if (anchor !== undefined) return anchor.input
  const properties = typeof input_schema === "object" ? input_schema["properties"] : {}
  return Object.fromEntries(Object.keys(properties as object).map((name) => [name, "."]))
}

/** A transition as a model makes it: with fields of its step's scope where the skill has a STATE, or else with an output. */
const moved = ({ contract }: SkillSpec, state: SkillState, result: Schema.Json): Said => {
  const on = state.transitions[0]?.on ?? ""
  if (contract === undefined) return calls(["choir.skill.transition", { on, output: result }])
  const scope = state.state_write ?? contract.state_write
  const writes = Object.fromEntries(
    Object.entries(result as Readonly<Record<string, Schema.Json>>).filter(([field]) => scope.includes(field))
  )
  return calls(["choir.skill.transition", { on, writes, confidence: 1 }])
}

const stepOf = (messages: ReadonlyArray<Message>) => {
  const at = messages.findLastIndex(({ content }) => /You are in the step|No skill is running:/u.test(content ?? ""))
  const step = /You are in the step (\S+) of the skill/u.exec(messages[at]?.content ?? "")?.[1]
  return { step, since: messages.slice(at + 1) }
}

/** A model that uses one tool of each step, then takes its first way, with the part of the example's result that the step may write. */
const following = (spec: SkillSpec): Script => {
  const result = (spec.contract?.golden_anchors[0]?.output ?? {}) as Readonly<Record<string, Schema.Json>>
  return (messages) =>
    Effect.sync((): Said => {
      const { since, step } = stepOf(messages)
      const state = step === undefined ? undefined : skillState(spec, step)
      if (state === undefined)
        return messages.some(({ role }) => role === "tool")
          ? says("all done")
          : calls(["choir.skill.start", { skill: spec.name, input: inputOf(spec) }])
      const [tool] = state.allowed_tools
      const hasUsed = since.some(({ role }) => role === "tool")
      if (tool !== undefined && !hasUsed) return calls([tool, {}])
      return moved(spec, state, result)
    })
}

/** The resources of the tools that skills require. */
const BOUND: Partial<AgentConfig> = {
  web: "browse",
  search: { secret: SecretName.make("search-key") },
  email: Schema.decodeSync(EmailAccount)({
    address: "ada@example.org",
    smtp_host: "mail.example.org",
    smtp_port: 465,
    imap_host: "mail.example.org",
    imap_port: 993,
    secret: "mail-key"
  })
}

describe("the starter's skills", () => {
  it("are thirteen, each with all nine points and described in a prompt, and none begins by the clock", () => {
    assert.deepStrictEqual(specs.map(({ name }) => name).toSorted(), [
      "backup-check",
      "careful_change",
      "code-change-with-tests",
      "daily-brief",
      "dependency-update",
      "inbox-triage",
      "meeting-notes",
      "release-notes",
      "research-with-sources",
      "spend-report",
      "summarize",
      "todo-flagger",
      "weekly-review"
    ])
    const book = bookOf(...BUILT_IN_SKILLS, ...specs)
    const prompt = skillList(book, new Set([SKILL_START, SKILL_LIST]))
    for (const { description, name } of book.values()) assert.include(prompt, `\n- ${name}: ${description}`)
    assert.isBelow(prompt.length, 2000)
    assert.deepStrictEqual(
      specs.flatMap(({ registry }) => registry?.triggers?.filter(({ kind }) => kind === "schedule") ?? []),
      []
    )
    for (const spec of specs) {
      const { grade, points } = gateReport(spec, { facts: FACTS })
      const failed = points.flatMap(({ detail, ok, point }) => (ok ? [] : [`${point}: ${detail}`]))
      assert.deepStrictEqual([grade, ...failed], ["verified"], spec.name)
    }
  })

  it.effect.each([
    ["inbox-triage", "choir-email-check, choir-email-receive", "it is bound to no e-mail account"],
    ["research-with-sources", "choir-web-search", "it has no search engine"]
  ] as const)("say what an agent lacks that has no account for them: %s", ([name, tools, why]) =>
    Effect.gen(function* () {
      yield* ticking
      const spec = specs.find((each) => each.name === name)
      const plane = yield* makeMemoryControlPlane
      const config = { ...agentConfig({}), web: "fetch" as const, grants: spec?.contract?.capabilities ?? [] }
      const input = spec === undefined ? {} : inputOf(spec)
      const script = inOrder(calls(["choir.skill.start", { skill: name, input }]), says("it cannot"))
      const skills = bookOf(...(spec === undefined ? [] : [spec]))
      const agent = yield* Effect.forkScoped(runAgent({ plane, script, tools: [], skills, config }))
      yield* plane.say("go")
      yield* plane.until(() => spoken(plane.events).length > 0 && quiet(plane.state()))
      yield* Fiber.interrupt(agent)
      assert.strictEqual(
        ofType(plane.events, "ToolResultCommitted")[0]?.payload.summary,
        `the skill ${name} needs ${tools}, which this agent does not have: ${why}. A person can change that in config.json`
      )
    })
  )

  it.effect.each(specs.map((spec) => [spec.name, spec] as const))("run to their end: %s", ([, spec]) =>
    Effect.gen(function* () {
      yield* ticking
      const plane = yield* makeMemoryControlPlane
      const tools = toolsOf(spec).map((name) =>
        testTool(
          name,
          () =>
            Effect.succeed({
              status: "success",
              summary: `${name} done`,
              ...(OUTPUTS[name] === undefined ? {} : { output: OUTPUTS[name] })
            }),
          { effect: "none" }
        )
      )
      const config = { ...agentConfig({}), ...BOUND, grants: spec.contract?.capabilities ?? [] }
      const agent = yield* Effect.forkScoped(
        runAgent({ plane, script: following(spec), tools, skills: bookOf(spec), config })
      )
      yield* plane.say("go")
      yield* plane.until(() => spoken(plane.events).length > 0 && quiet(plane.state()))
      yield* Fiber.interrupt(agent)
      const last = ofType(plane.events, "SkillTransitionCommitted").at(-1)?.payload
      assert.deepStrictEqual([last?.skill, last?.ended, last?.to], [spec.name, "completed", "done"])
      const used = ofType(plane.events, "ToolCallRequested").map(({ payload }) => payload.tool)
      assert.isTrue(isScript(spec) ? toolsOf(spec).every((tool) => used.includes(tool)) : used.length > 1)
    })
  )
})
