import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { connectionProblem, tryPostgres } from "#src/choirctl/doctor/postgresCheck.ts"
import { SecretName } from "#schema/Ids.ts"

const secret = SecretName.make("pg")
const server = { host: "127.0.0.1", port: 1, database: "choir", secret }
const WAIT_MS = 5000

describe("the check of a Postgres server", () => {
  it("names what keeps a connection from it, with the fix", () => {
    const deep = (code: string) => ({ reason: { cause: { cause: { code } } } })
    for (const [code, problem, fix] of [
      ["ECONNREFUSED", "nothing listens at 127.0.0.1:1", "start Postgres, or correct postgres in config.json"],
      ["ENOTFOUND", "the host of 127.0.0.1:1 cannot be found", "correct postgres in config.json"],
      ["28P01", "127.0.0.1:1 refuses the user or the password", "choirctl secret set pg"],
      ["3D000", "127.0.0.1:1 has no database choir", "create it with createdb"],
      ["ETIMEDOUT", "127.0.0.1:1 does not answer", "start Postgres, or correct postgres in config.json"]
    ] as const)
      assert.deepStrictEqual(connectionProblem(server, deep(code)), [problem, fix], code)
    assert.deepStrictEqual(
      connectionProblem({ url_secret: secret }, undefined)[1],
      "start Postgres, or correct the secret pg"
    )
  })

  it.live("looks at the secret first, and then at who listens", () =>
    Effect.gen(function* () {
      const tried = (value?: string) =>
        Effect.map(
          tryPostgres(server, value === undefined ? {} : { [secret]: Redacted.make(value) }, WAIT_MS),
          ({ problem }) => problem
        )
      assert.strictEqual(yield* tried(), "the secret pg has no value")
      assert.strictEqual(yield* tried("only-a-password"), "the secret pg is not user:password")
      assert.strictEqual(yield* tried("me:word"), "nothing listens at 127.0.0.1:1")
    })
  )
})
