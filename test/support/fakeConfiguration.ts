/** The configuration as the fake choird answers for it. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiError } from "#schema/ApiError.ts"
import type { ApplyReport, ConfigChange, ConfigPlan, LoadProgress } from "#schema/ConfigApi.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"

type Answer<A> = Effect.Effect<A, ApiError>

export interface ConfigurationAnswers {
  readonly changes: ReadonlyArray<ConfigChange>
  readonly load: Answer<ReadonlyArray<LoadProgress>>
  readonly apply: Answer<ApplyReport>
  readonly plan: Answer<ConfigPlan>
}

export const changes: ReadonlyArray<ConfigChange> = [
  { path: "models.main.temperature", change: "changed", class: "hot-reload", command: "choirctl config apply" },
  {
    path: "runtime.cpus",
    change: "changed",
    class: "restart-required",
    command: "choirctl daemon stop && choirctl daemon start"
  }
]

const planned = [
  { before: "0", after: "0.25", applies: true, restarts: [] },
  { before: "1", after: "2", applies: false, restarts: [] }
]

export const usualConfiguration: ConfigurationAnswers = {
  changes,
  load: Effect.succeed([
    { type: "step", text: "fetch global" },
    {
      type: "done",
      result: { changes, repos: [{ repo: "global", commit: null, stale: true }], warnings: ["it is old"] }
    }
  ]),
  plan: Effect.succeed({
    plan: "a-plan",
    version: 3,
    changes: changes.flatMap((row, index) => planned.slice(index, index + 1).map((more) => ({ ...row, ...more })))
  }),
  apply: Effect.succeed({ version: 4, previous: 3, applied: changes.slice(0, 1), pending: changes.slice(1) })
}

/** @param note is told each call. */
export const fakeConfiguration = (
  { apply, changes, load, plan }: ConfigurationAnswers,
  note: (name: string, input: unknown) => void
) => {
  const noted = <A>(name: string, answer: Answer<A>, input?: unknown): Answer<A> =>
    Effect.andThen(
      Effect.sync(() => note(name, input)),
      answer
    )
  return HttpApiBuilder.group(OperatorApi, "configuration", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        load: () => Effect.map(noted("load", load), Stream.fromIterable),
        diff: () => noted("diff", Effect.succeed(changes)),
        apply: () => noted("apply", apply),
        plan: () => noted("plan", plan),
        applyPlan: ({ payload }) => noted("applyPlan", apply, payload),
        rollback: ({ payload }) => noted("rollback", apply, payload),
        history: () =>
          noted(
            "history",
            Effect.succeed([
              { version: 3, created_at: "2026-01-01T00:00:00.000Z", action: "apply", who: "operator", running: true }
            ])
          ),
        version: ({ params }) => noted("version", Effect.succeed(`version ${params.version}`)),
        applySecrets: () =>
          noted(
            "applySecrets",
            Effect.succeed({ version: 4, changed: [{ name: "key", change: "changed" }], pending: [] })
          )
      })
    )
  )
}
