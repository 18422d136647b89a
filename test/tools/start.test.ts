/** `npm start` in a terminal that is taken away from it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { answerWizard, CHAT_PROMPT, sitDown, type Variant } from "../support/newcomer.ts"
import { LATER } from "../support/terminal.ts"

const HERE: Variant = { who: "root", bubblewrap: false, telegram: false, provider: false }

/** The programs that work on a home, with the process id first. */
const programsOn = (home: string): ReadonlyArray<string> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/u.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")
        return command.includes(home) && /choird|choir-agent/u.test(command) ? [`${pid} ${command}`] : []
      } catch {
        return []
      }
    })

const WIND_DOWN = Schedule.max([Schedule.spaced("100 millis"), Schedule.recurs(300)])

describe("npm start", () => {
  it.live("stops choird and the agent when its terminal is closed during the chat", () =>
    Effect.gen(function* () {
      const newcomer = yield* sitDown(HERE)
      const folder = join(newcomer.home, ".choir.d")
      const { terminal } = newcomer
      yield* terminal.line("npm start")
      yield* answerWizard(newcomer, HERE)
      yield* terminal.see("Talk to choir", LATER)
      yield* terminal.see(CHAT_PROMPT, LATER)
      assert.isAbove(programsOn(folder).length, 1)
      yield* terminal.close
      const left = yield* Effect.retry(
        Effect.suspend(() => {
          const running = programsOn(folder)
          return running.length === 0 ? Effect.succeed(running) : Effect.fail(running)
        }),
        WIND_DOWN
      ).pipe(Effect.catch((running) => Effect.succeed(running)))
      assert.deepStrictEqual(left, [])
    }).pipe(Effect.scoped)
  )
})
