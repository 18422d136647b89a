import { describe, expect, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { withServices } from "#src/shared/withServices.ts"

const Near = Context.Service<{ readonly near: string }>("test/Near")
const Far = Context.Service<{ readonly far: string }>("test/Far")
const own = { near: "own" }
const services = Context.make(Near, own).pipe(Context.add(Far, { far: "own" }))
const both = Effect.map(Effect.all([Near, Far]), ([{ near }, { far }]) => `${near} ${far}`)

describe("services for an effect", () => {
  it.effect("replace what the caller has, and the caller keeps its own", () =>
    Effect.gen(function* () {
      expect(yield* withServices(services)(both)).toBe("own own")
      expect((yield* Near).near).toBe("caller's")
    }).pipe(Effect.provideService(Near, { near: "caller's" }))
  )

  it.effect("leave the context of a caller that has the same ones as it is", () =>
    Effect.gen(function* () {
      const callers = yield* Effect.context()
      expect(yield* withServices(services)(Effect.context())).toBe(callers)
    }).pipe(Effect.provide(services))
  )
})
