/** The lanes' scripts: the runtime says what a model would say, so that locks, intents, budgets and recovery are the same for both. */
import { Effect } from "effect"
import type { LaneId } from "#schema/Ids.ts"
import { ToolName, toWireName } from "#schema/Tool.ts"
import { laneOf } from "#src/shared/session/lanes.ts"
import { isScript } from "#src/shared/image/scriptStates.ts"
import { Arbiter, commitIfDue } from "#src/agent/arbiter/Arbiter.ts"
import { EventLog } from "#src/agent/arbiter/EventLog.ts"
import { nextScriptOutput, scriptModel } from "#src/agent/arbiter/skillScript.ts"
import { Replication } from "#src/agent/control/Replication.ts"
import { SkillRegistry } from "#src/agent/image/SkillRegistry.ts"

const NO_USAGE = { input_tokens: 0, output_tokens: 0 }

export const makeScripts = Effect.gen(function* () {
  const arbiter = yield* Arbiter
  const log = yield* EventLog
  const replication = yield* Replication
  const skills = yield* SkillRegistry

  const scriptOf = (lane: LaneId) => {
    const memory = laneOf(arbiter.state(), lane)
    const spec = memory?.skill === undefined ? undefined : skills.get(memory.skill.name)
    return memory === undefined || spec === undefined || !isScript(spec) ? undefined : { memory, spec }
  }

  /** Commits the next output of the script that a lane runs. False where a model is to be asked. */
  const advance = Effect.fnUntraced(function* (lane: LaneId, purpose: "turn" | "report") {
    if (scriptOf(lane) === undefined) return false
    yield* replication.room
    const script = scriptOf(lane)
    const next = script === undefined ? undefined : nextScriptOutput(script.memory, script.spec, log.find)
    if (script === undefined || next === undefined) return true
    const call = { name: toWireName(ToolName.make(next.name)), input: next.input }
    yield* commitIfDue(arbiter, {
      type: "Output",
      lane,
      output: {
        purpose,
        model: scriptModel(script.spec),
        tool_calls: [call],
        finish_reason: "tool_calls",
        usage: NO_USAGE,
        latency_ms: 0
      }
    })
    return true
  })
  return advance
})
