/**
 * Kills choird at random points while configurations are loaded, applied and gone back to, and looks at what runs: always one of those
 * that were written, whole, under numbers that only grow (R56).
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Random, Ref, Stream } from "effect"
import { makeInstallation } from "./installation.ts"

export interface ConfigChaosOptions {
  readonly kills: number
  readonly seed: string
  readonly progress?: (kill: number) => void
}

/** Each key of a configuration carries its number, so that a mixture of two shows. */
const marked = (mark: number) => ({
  budgets: { per_job_max_steps: mark, turn_max_steps: mark },
  rate_limit_retry_ms: 1000 + mark
})

interface Marked {
  readonly budgets: { readonly per_job_max_steps: number; readonly turn_max_steps: number }
  readonly rate_limit_retry_ms: number
}

/** The number that a configuration carries, or `undefined` for a mixture. */
const markOf = (config: unknown): number | undefined => {
  const { budgets, rate_limit_retry_ms } = config as Marked
  const mark = budgets.per_job_max_steps
  return budgets.turn_max_steps === mark && rate_limit_retry_ms === 1000 + mark ? mark : undefined
}

export const configChaos = Effect.fnUntraced(
  function* ({ kills, progress }: ConfigChaosOptions) {
    const choir = yield* makeInstallation({ endpoint: "http://127.0.0.1:1/v1", config: marked(1) })
    const { api, home } = choir
    const file = join(home, "config.json")
    const base = JSON.parse(readFileSync(file, "utf8")) as object
    const write = (mark: number) => writeFileSync(file, JSON.stringify({ ...base, ...marked(mark) }), { mode: 0o600 })
    const problems: Array<string> = []
    const newest = yield* Ref.make(0)
    let written = 1
    let applied = 0
    let seen = 0

    /** What an operator sees at one moment. */
    const look = Effect.gen(function* () {
      const mark = markOf(yield* api.system.config())
      if (mark === undefined || mark > written) problems.push(`what runs is no configuration that was written: ${mark}`)
      // What is known before the question; while it is answered a change may be heard of that came after the answer.
      const before = yield* Ref.get(newest)
      const { choird } = yield* api.system.status()
      yield* Ref.update(newest, (version) => Math.max(version, choird.config_version))
      if (choird.config_version < before) problems.push(`version ${choird.config_version} came after ${before}`)
      seen += 1
      return choird.config_version
    })
    const change = Effect.gen(function* () {
      const back = (yield* Random.nextIntBetween(0, 4)) === 0 ? yield* Ref.get(newest) : 0
      if (back > 1) {
        const version = yield* Random.nextIntBetween(1, back)
        yield* api.configuration.rollback({ payload: { version } })
      } else {
        written += 1
        write(written)
        yield* Stream.runDrain(yield* api.configuration.load())
        const { version } = yield* api.configuration.apply()
        yield* Ref.update(newest, (known) => Math.max(known, version))
      }
      applied += 1
    })
    /** The numbers of all versions, and that each holds one configuration. */
    const audit = Effect.gen(function* () {
      const rows = yield* api.configuration.history()
      const falls = rows.some(({ version }, index) => version >= (rows[index - 1]?.version ?? Infinity))
      if (falls) problems.push("the numbers of the history do not fall")
      const running = rows.filter((row) => row.running)
      if (running.length !== 1) problems.push(`${running.length} versions run`)
      for (const { version } of rows.slice(0, 3)) {
        const content = yield* api.configuration.version({ params: { version } })
        if (markOf(content) === undefined) problems.push(`version ${version} is a mixture`)
      }
    })

    for (let killed = 0; killed < kills; killed += 1) {
      const choird = yield* choir.start
      const started = markOf(yield* api.system.config())
      if (started !== written) problems.push(`choird started with ${started}, and config.json is ${written}`)
      yield* look
      yield* audit
      const changes = yield* Effect.forkChild(Effect.ignore(Effect.forever(change)))
      const looks = yield* Effect.forkChild(Effect.ignore(Effect.forever(look)))
      yield* Effect.sleep(yield* Random.nextIntBetween(0, 400))
      // A busy machine may have changed nothing by then: one change at least comes before the last kill.
      if (killed === kills - 1) yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => applied > 0 })
      yield* choird.signal("SIGKILL")
      yield* choird.exited
      yield* Fiber.interrupt(changes)
      yield* Fiber.interrupt(looks)
      progress?.(killed + 1)
    }
    yield* choir.start
    yield* look
    yield* audit
    return { kills, applied, seen, version: yield* Ref.get(newest), problems }
  },
  (effect, { seed }) => Effect.scoped(effect).pipe(Random.withSeed(seed))
)
