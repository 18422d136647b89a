/** The parts of the outside that only choird can try for `choirctl doctor`: the web as agents reach it, and the identities with which git works for them. */
import { Context, Effect, Layer } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import type { Tried } from "#schema/SystemApi.ts"
import { ConfigStore } from "#src/choird/config/ConfigStore.ts"
import { makeIdentityTry } from "./identityTry.ts"
import { makeWebTries } from "./webTries.ts"

/** The most that is tried at once. */
const TRIES_AT_ONCE = 3

/** Tries the outside, once for each question. */
export class OutsideTries extends Context.Service<
  OutsideTries,
  {
    /** A fetch and a visit of one page, and one question to a server of each git identity. Nothing is changed anywhere. */
    readonly all: Effect.Effect<ReadonlyArray<Tried>>
  }
>()("choir/choird/OutsideTries") {
  static readonly layer = Layer.effect(
    OutsideTries,
    Effect.gen(function* () {
      const store = yield* ConfigStore
      const webTries = yield* makeWebTries
      const identityTry = yield* makeIdentityTry
      const all = Effect.gen(function* () {
        const { config } = yield* store.current
        const names = Object.keys(config.git_identities).map((name) => ResourceName.make(name))
        const tries = [...webTries(config), ...names.map((name) => identityTry(name, config))]
        return yield* Effect.all(tries, { concurrency: TRIES_AT_ONCE })
      })
      return OutsideTries.of({ all: all.pipe(Effect.withSpan("OutsideTries.all")) })
    })
  )
}
