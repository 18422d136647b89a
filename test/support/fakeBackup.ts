/** What the fake choird answers to a backup of the database. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import type { ApiError } from "#schema/ApiError.ts"
import { OperatorApi } from "#schema/OperatorApi.ts"

export const fakeBackup = (calls: Array<{ readonly name: string }>, answer: Effect.Effect<Uint8Array, ApiError>) =>
  HttpApiBuilder.group(OperatorApi, "database", (handlers) =>
    Effect.succeed(
      handlers.handleAll({
        backup: () =>
          Effect.andThen(
            Effect.sync(() => calls.push({ name: "backup" })),
            Effect.map(answer, (bytes) => Stream.make(bytes))
          )
      })
    )
  )
