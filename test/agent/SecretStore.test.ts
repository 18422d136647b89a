import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { SecretStore } from "#src/agent/SecretStore.ts"

const [a, b] = [SecretName.make("a"), SecretName.make("b")]

describe("SecretStore", () => {
  it.effect("adds to what it holds, and forgets what a refresh does not name again (R35)", () =>
    Effect.gen(function* () {
      const store = yield* SecretStore
      yield* store.replaceAll(new Map([[a, Redacted.make("1")]]))
      yield* store.add([b], new Map([[b, Redacted.make("2")]]))
      assert.deepStrictEqual([...store.named()], [b])
      const taken = yield* store.get(a)
      yield* store.replaceAll(new Map([[b, Redacted.make("3")]]))
      assert.isUndefined(yield* store.get(a))
      assert.strictEqual(Redacted.value((yield* store.get(b)) ?? Redacted.make("")), "3")
      assert.strictEqual(taken === undefined ? "" : Redacted.value(taken), "1")
    }).pipe(Effect.provide(SecretStore.layer))
  )
})
