/** The database that config.json names. */
import { join } from "node:path"
import { Effect, Layer, Redacted, Runtime, Schema } from "effect"
import type { Postgres } from "#schema/Config.ts"
import type { SecretName } from "#schema/Ids.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { Database } from "./Database.ts"

/** The secret with the credentials of Postgres has no value, or not the form `user:password`. */
export class DatabaseSecretInvalid extends Schema.TaggedError<DatabaseSecretInvalid>()("DatabaseSecretInvalid", {
  secret: Schema.String,
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 78
  override get message() {
    return `the secret "${this.secret}" of Postgres ${this.problem}: choirctl secret set ${this.secret}`
  }
}

const valueOf = Effect.fnUntraced(function* (secret: SecretName) {
  const store = yield* ConfigStore
  return yield* Effect.mapError(
    store.secret(secret),
    () => new DatabaseSecretInvalid({ secret, problem: "has no value" })
  )
})

/** User and password, which one secret holds as `user:password`. */
const credentials = Effect.fnUntraced(function* (secret: SecretName) {
  const text = Redacted.value(yield* valueOf(secret))
  const at = text.indexOf(":")
  if (at <= 0) return yield* new DatabaseSecretInvalid({ secret, problem: "is not user:password" })
  return { user: text.slice(0, at), password: Redacted.make(text.slice(at + 1)) }
})

const server = (postgres: Exclude<Postgres, { readonly embedded: true }>, migrates: boolean) =>
  Layer.unwrap(
    Effect.gen(function* () {
      if ("url_secret" in postgres)
        return Database.layerPostgres({ url: yield* valueOf(postgres.url_secret), migrates, alone: true })
      const { database, host, port } = postgres
      return Database.layerPostgres({
        host,
        port,
        database,
        migrates,
        alone: true,
        ...(yield* credentials(postgres.secret))
      })
    })
  )

type Server = ReturnType<typeof server>
type Problem = Layer.Error<Server> | Layer.Error<ReturnType<typeof Database.layerEmbedded>>

/** @param migrates false for work that migrates or replaces the database itself. */
export const configuredDatabase = (
  postgres: Postgres,
  home: string,
  migrates = true
): Layer.Layer<Layer.Success<Server>, Problem, ConfigStore> =>
  "embedded" in postgres ? Database.layerEmbedded({ folder: join(home, "data"), migrates }) : server(postgres, migrates)
