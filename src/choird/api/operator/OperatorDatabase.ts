/** What an operator asks of the database. */
import { Effect, Stream } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { OperatorApi } from "#schema/OperatorApi.ts"
import { Backup } from "#src/choird/database/Backup.ts"
import { Audit } from "#src/choird/logs/Audit.ts"

/** @param version of choird, as its package says. */
export const layerOperatorDatabase = (version: string) =>
  HttpApiBuilder.group(
    OperatorApi,
    "database",
    Effect.fnUntraced(function* (handlers) {
      const audit = yield* Audit
      const backup = yield* Backup
      return handlers.handleAll({
        backup: Effect.fn("OperatorApi.backup")(function* () {
          yield* audit.record({ who: "operator", action: "backup", detail: {} })
          // A defect cuts the connection, which tells the reader that the file is not whole.
          return Stream.orDie(Stream.tapError(backup.file(version), (error) => Effect.logError(error.message)))
        })
      })
    })
  )
