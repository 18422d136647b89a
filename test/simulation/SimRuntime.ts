/** Effect on the simulated machine: a scheduler, a clock and random numbers, given to a program as Context references. */
import { Clock, Context, Duration, Effect, Logger, Random, References, Scheduler } from "effect"
import { Salts } from "#src/agent/arbiter/Arbiter.ts"
import type { Kernel, Process } from "./Kernel.ts"
import type { Seed } from "./Seed.ts"

/** How many operations a fiber takes at most before another one may come in between. */
const YIELD_OPS = [20, 100, 1000] as const

/** Puts what is ready on the kernel's list, and lets the seed say when a fiber has to pause. */
const makeScheduler = (kernel: Kernel, process: Process, seed: Seed): Scheduler.Scheduler => {
  const most = seed.pick(YIELD_OPS)
  let left = seed.between(1, most)
  const scheduleTask = (task: () => void) => {
    process.tasks++
    kernel.post(process, () => {
      process.tasks--
      task()
    })
  }
  const dispatcher = { scheduleTask, flush: () => undefined }
  return {
    executionMode: "sync",
    // Never at the first operation of a turn: a fiber that was interrupted before it began would lose the interrupt, which the
    // library's own scheduler, whose first pause is far later, cannot do either.
    shouldYield: (fiber) => {
      kernel.operations++
      if (--left > 0 || fiber.currentOpCount < 2) return false
      left = seed.between(1, most)
      return true
    },
    makeDispatcher: () => dispatcher
  }
}

const makeClock = (kernel: Kernel, process: Process): Clock.Clock => {
  const millis = () => kernel.timeOfDay()
  const nanos = () => BigInt(kernel.timeOfDay()) * 1_000_000n
  const monotonic = () => BigInt(kernel.now) * 1_000_000n
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) => {
      const ms = Duration.toMillis(duration)
      if (ms <= 0) return Effect.yieldNow
      if (!Number.isFinite(ms)) return Effect.never
      return Effect.callback<void>((resume) => {
        process.timers++
        let pending = true
        const done = () => {
          if (pending) process.timers--
          pending = false
        }
        const cancel = kernel.after(process, ms, () => {
          done()
          resume(Effect.void)
        })
        return Effect.sync(() => {
          done()
          cancel()
        })
      })
    }
  }
}

/** Salts by their number: drawn from the seed, they would change whatever else it decides. */
const makeSalts = () => {
  let count = 0
  return () => (++count).toString(16).padStart(32, "0")
}

/** Runs programs in a process. `log` hears what they log. */
export const runtimeOf = (kernel: Kernel, process: Process, seed: Seed, log: (line: string) => void) => {
  const logger = Logger.make(({ logLevel, message }) => {
    log(`${process.name} ${logLevel} ${describe(message)}`)
  })
  const context = Context.empty().pipe(
    Context.add(Scheduler.Scheduler, makeScheduler(kernel, process, seed)),
    Context.add(Clock.Clock, makeClock(kernel, process)),
    Context.add(Random.Random, {
      nextDoubleUnsafe: seed.unit,
      nextIntUnsafe: () => seed.below(Number.MAX_SAFE_INTEGER)
    }),
    Context.add(Salts, makeSalts()),
    Context.add(Logger.CurrentLoggers, new Set([logger])),
    Context.add(References.TracerEnabled, false),
    Context.add(References.MinimumLogLevel, "Info")
  )
  const run = Effect.runForkWith(context)
  return {
    /** Starts a program at its next step. */
    start: (program: Effect.Effect<unknown, unknown>) => kernel.post(process, () => void run(program))
  }
}

const describe = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part) => (typeof part === "string" ? part : part instanceof Error ? part.message : JSON.stringify(part)))
    .join(" ")
