import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import type { TriedTool } from "#schema/ContainedTrial.ts"
import { ToolManifest } from "#schema/Tool.ts"
import { rehearsalText } from "#src/choird/approvals/rehearsalText.ts"
import {
  comparePrograms,
  type ProgramCall,
  programProblem,
  proposedProgram
} from "#src/choird/trials/comparePrograms.ts"

type Output = Extract<TriedTool, { readonly type: "ran" }>["output"]
type Status = Extract<TriedTool, { readonly type: "ran" }>["status"]

const ran = (output?: Output, status: Status = "success"): TriedTool => ({
  type: "ran",
  effect: "none",
  status,
  summary: "counted",
  ...(output === undefined ? {} : { output }),
  duration_ms: 1
})

const call = (today: TriedTool, proposed: TriedTool, recorded: ProgramCall["recorded"]): ProgramCall => ({
  recorded,
  today,
  proposed
})
const THREE = { status: "success", output: { notes: 3 } } as const

describe("the program of a proposed tool", () => {
  it("is the same where it gives what today's gives", () => {
    assert.deepStrictEqual(comparePrograms([call(ran({ notes: 3 }), ran({ notes: 3 }), THREE)]), {
      verdict: "same",
      reasons: []
    })
  })

  it("is worse where it fails, is held back, or gives less", () => {
    const today = ran({ notes: 3 })
    const of = (proposed: TriedTool) => comparePrograms([call(today, today, THREE), call(today, proposed, THREE)])
    assert.deepStrictEqual(of(ran(undefined, "error")), {
      verdict: "worse",
      reasons: ["fails on 1 of 2 calls that worked then: error: counted"]
    })
    assert.deepStrictEqual(of(ran(undefined, "timeout")).verdict, "worse")
    assert.match(of({ type: "asks", why: "it acts outside this machine" }).reasons.join(), /rejected: it acts outside/u)
    assert.deepStrictEqual(of(ran({})).reasons, ["leaves notes out of its output"])
    assert.deepStrictEqual(of(ran({ notes: null })).reasons, ["leaves notes empty, which today's version fills"])
  })

  it("has its other values told where today's gives the recorded ones, and not where the empty workspace changes them", () => {
    assert.deepStrictEqual(comparePrograms([call(ran({ notes: 3 }), ran({ notes: 4 }), THREE)]), {
      verdict: "same",
      reasons: ["gives a different output from the recorded one on 1 of 1 call"]
    })
    assert.deepStrictEqual(comparePrograms([call(ran({ notes: 1 }), ran({ notes: 4 }), THREE)]).reasons, [])
  })

  it("is better where it succeeds on what failed then", () => {
    const failed = call(ran(undefined, "error"), ran({ notes: 3 }), { status: "error" })
    assert.deepStrictEqual(comparePrograms([failed]).verdict, "better")
  })

  it("is not rehearsed where today's does not do again what it did", () => {
    const { reasons, verdict } = comparePrograms([call(ran(undefined, "error"), ran({ notes: 3 }), THREE)])
    assert.deepStrictEqual(verdict, "not_rehearsed")
    assert.match(
      reasons.join(),
      /^today's program, in an empty workspace, does not repeat what was recorded \(error: counted\)/u
    )
  })
})

const manifest = (runtime: object) =>
  Schema.decodeUnknownSync(ToolManifest)({
    llm: { name: "notes.count", description: "Counts notes.", input_schema: { type: "object" } },
    runtime: { exec_path: "notes.count", effect: "none", ...runtime }
  })

describe("whether a program runs unapproved", () => {
  it("follows from its manifest: nothing outside, no network, no secret", () => {
    const problem = (runtime: object) => programProblem("its", manifest(runtime))
    assert.isUndefined(problem({}))
    assert.isUndefined(problem({ effect: "workspace" }))
    assert.match(problem({ effect: "external" }) ?? "", /acts outside/u)
    assert.match(problem({ network: true }) ?? "", /network/u)
    assert.match(problem({ secret_resources: ["key"] }) ?? "", /secrets/u)
    assert.match(programProblem("today's", undefined) ?? "", /^today's manifest is missing/u)
  })

  it("follows from its files: those that the proposal brings, and no sources", () => {
    const file = (path: string, executable = false) => ({ path, executable, bytes: Buffer.from("x") })
    const own = [file("tools/agent/notes.count"), file("tools/agent/notes.count2"), file("tools/global/notes.count")]
    const { executable, files } = Result.getOrThrow(proposedProgram(manifest({}), { files: own }))
    assert.deepStrictEqual([executable, ...files.map(({ path }) => path)], ["notes.count", "notes.count"])
    assert.isTrue(files[0]?.executable)
    const source = proposedProgram(manifest({}), { files: [file("tools/agent/notes.count/main.c")] })
    assert.deepStrictEqual(source, Result.fail("its program is still to be built"))
    const stored = [...own, { path: "tools/agent/notes.count/data", executable: false, bytes: { size: 1 } as never }]
    assert.isTrue(Result.isFailure(proposedProgram(manifest({}), { files: stored })))
  })
})

describe("a rehearsal of a tool in words", () => {
  it("says whether its program ran, and why not", () => {
    const runs = [{ session_id: "0123456789abcdef" as never, verdict: "same" as const, reasons: [] }]
    const text = (program: { readonly calls: number; readonly problem?: string }) =>
      rehearsalText({ kind: "tool", runs, program, cost_usd: 0 })
    assert.include(
      text({ calls: 2 }),
      "The tool's program ran on 2 recorded calls beside today's: in an empty workspace, without a network and without secrets."
    )
    assert.include(
      text({ calls: 0, problem: "its manifest wants\u202e secrets" }),
      "did not run: only its manifest was compared, since its manifest wants\\u202e secrets."
    )
  })
})
