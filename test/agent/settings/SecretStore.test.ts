import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SecretName } from "#schema/Ids.ts"
import { SECRETS_REMEMBERED_MAX, SecretStore } from "#src/agent/settings/SecretStore.ts"

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

  it.effect("takes what it holds and what it held out of texts and JSON, but no word that is too short (R32)", () =>
    Effect.gen(function* () {
      const store = yield* SecretStore
      const text = "the-old-value, the-new-value, 7letter"
      assert.strictEqual(store.scrub(text), text)
      yield* store.replaceAll(new Map([[a, Redacted.make("the-old-value")]]))
      yield* store.add([b], new Map([[b, Redacted.make("7letter")]]))
      assert.strictEqual(store.scrub(text), "<redacted>, the-new-value, 7letter")
      yield* store.replaceAll(new Map([[a, Redacted.make("the-new-value")]]))
      assert.strictEqual(store.scrub(text), "<redacted>, <redacted>, 7letter")
      assert.deepStrictEqual<unknown>(store.scrubJson([{ "the-old-value": text }]), [
        { "<redacted>": "<redacted>, <redacted>, 7letter" }
      ])
    }).pipe(Effect.provide(SecretStore.layer))
  )

  it.effect("remembers so many values, of which the newest are all that it holds", () =>
    Effect.gen(function* () {
      const store = yield* SecretStore
      const value = (index: number) => `value-number-${index}-`
      const all = Array.from({ length: SECRETS_REMEMBERED_MAX + 1 }, (_, index) => value(index))
      for (const held of all) yield* store.replaceAll(new Map([[a, Redacted.make(held)]]))
      assert.deepStrictEqual(
        all.map(store.scrub).filter((text) => text !== "<redacted>"),
        [value(0)]
      )
    }).pipe(Effect.provide(SecretStore.layer))
  )
})
