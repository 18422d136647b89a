/** The model of a history with all that a session meets: what edge says by the plan of each turn, and what four jobs say. */
import { Effect } from "effect"
import type { ChoirEvent } from "#schema/Event.ts"
import { fillerOf } from "../support/filler.ts"
import { SIZE } from "../support/size.ts"
import type { MemoryControlPlane } from "../support/testing/MemoryControlPlane.ts"
import * as double from "../support/testing/Provider.ts"
import { ofType } from "../support/testing/TestAgent.ts"

const STEPS = SIZE.historySteps

const reasoning = "The next place is unknown as yet."
export const call = (name: string, input: object = {}) => double.say({ calls: [{ name, input }], reasoning })
const words = (text: string) => double.say({ text, reasoning })

export const LOOKS = double.say({ calls: [1, 2].map((place) => ({ name: "mem-read", input: { place } })), reasoning })
/** The skill `tidy` from its beginning to its end. */
export const SKILL = [
  call("choir-skill-start", { skill: "tidy" }),
  call("mem-read"),
  call("choir-skill-transition", { on: "complete", output: { seen: "dust" } }),
  call("ws-write"),
  call("choir-skill-transition", { on: "complete" })
]
/** Reads a file of the workspace, one that is not there, and changes the first. */
export const FILES = [
  double.say({
    calls: ["notes.md", "nothing.md"].map((path) => ({ name: "choir-fs-read", input: { path } })),
    reasoning
  }),
  call("choir-fs-edit", { path: "notes.md", old_text: "sand", new_text: "lime" })
]
export const SUMMARY = { title: "Holes", summary: "Holes were dug.", decisions: [], open_points: [], facts: [] }

/** A job's name stands in its task. */
export const SPAWNS = double.say({
  calls: ["long", "reporting", "tidying", "failing"].map((job_name) => ({
    name: "choir-core-spawn",
    input: { job_name, task_spec: `Dig the hole ${job_name}.` }
  })),
  reasoning
})
/** The steps after which the two jobs that a crash interrupts wait for it. */
export const STEPS_BEFORE_CRASH = STEPS / 4
/** The request of the failing job that fails, and the one that ends it. */
const [FAILS_AT, ENDS_AT] = [3, 6]

/** The steps of a lane, without compactions. */
export const stepsOf = (events: ReadonlyArray<ChoirEvent>, lane: string): number =>
  ofType(events, "ModelOutput").filter((event) => event.lane === lane && event.payload.purpose === "turn").length

/** The answers of jobs. Steps count once choird has them, so that a crash loses none. */
const makeWorkers = (plane: MemoryControlPlane, crashed: Effect.Effect<void>) => {
  const skill = [...SKILL]
  let [failing, digging] = [0, 0]
  const digs = (name: string, last_step: number): double.Reply => {
    const step = stepsOf(plane.events, `core:${name}`)
    // Other calls than before, whatever choird has by now.
    digging += 1
    const reply =
      step > last_step
        ? words(`dug: ${fillerOf(80, step)}`)
        : name === "reporting"
          ? call("choir-core-report", { kind: "progress", text: `step ${step}, ${digging}` })
          : call("mem-read", { digging })
    return step < STEPS_BEFORE_CRASH ? reply : Effect.andThen(crashed, reply)
  }
  return (text: string): double.Reply => {
    switch (/Dig the hole (\w+)/u.exec(text)?.[1]) {
      case "tidying":
        return skill.shift() ?? words("all is in order")
      case "failing":
        failing += 1
        if (failing === FAILS_AT) return double.failing(401)
        return failing < ENDS_AT ? call("mem-read", { failing }) : words("it is sand")
      case "reporting":
        return digs("reporting", STEPS / 2)
      default:
        return digs("long", STEPS)
    }
  }
}

/** A model that knows its prompt and the plan of the present turn. */
export const makeModel = (plane: MemoryControlPlane, crashed: Effect.Effect<void>) => {
  const work = makeWorkers(plane, crashed)
  const planned: Array<double.Reply> = []
  let [said, isResumed] = [0, false]

  const report = (text: string): double.Reply => {
    const failed = String.raw`\"job_name\":\"failing\",\"outcome\":\"error\"`
    if (isResumed || !text.includes(failed)) return words("A job ended.")
    isResumed = true
    return call("choir-core-spawn", { job_name: "failing", task_spec: "Dig on.", resume: true })
  }
  return {
    /** The messages so far. */
    said: () => said,
    /** A person's message, and the answers of its turn before the last one. */
    say: (replies: ReadonlyArray<double.Reply>) =>
      Effect.suspend(() => {
        said += 1
        planned.splice(0, planned.length, ...replies, words(fillerOf(60, said)))
        return plane.say(`message ${said}: ${fillerOf(40, said)}`)
      }),
    decide: ({ body }: double.ProviderRequest): double.Reply => {
      const text = JSON.stringify(body)
      if (text.includes("Compaction: your context is nearly full"))
        return call("choir-memory-delta", { summary_update: `Goal: to dig.\nDone: ${fillerOf(50, said)}` })
      if (text.includes("A session of an agent with its user ends.")) return call("choir-session-summary", SUMMARY)
      if (text.includes("You carry out one task")) return work(text)
      const isReport = text.lastIndexOf(String.raw`<choir-note>\nReport:`) > text.lastIndexOf(`message ${said}:`)
      return isReport ? report(text) : (planned.shift() ?? words("Fine."))
    }
  }
}
