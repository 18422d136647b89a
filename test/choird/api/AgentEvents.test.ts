import { assert, it } from "@effect/vitest"
import { Effect, Fiber, PubSub } from "effect"
import { TestClock } from "effect/testing"
import { SignalId } from "#schema/Ids.ts"
import { OTHER_SESSION, SESSION } from "../../support/control.ts"
import { describeTransports } from "../../support/everyTransport.ts"
import { ask, dial, type Place, until, untilClosed } from "../../support/unixHttp.ts"

const stream = (path: Place, headers: Readonly<Record<string, string>> = {}) =>
  Effect.map(dial(path), (socket) => {
    const lines = Object.entries({ host: "localhost", authorization: "Bearer lease", ...headers }).map((each) =>
      each.join(": ")
    )
    socket.write(`GET /events?session_id=${SESSION} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`)
    return socket
  })

describeTransports("GET /events", ({ openSession }) => {
  const inject = (id: string) => ({
    id,
    signal: { type: "Inject" as const, signal_id: SignalId.make(id), content: `text ${id}` }
  })

  it.effect("sends what is there, what comes, and comments while it is quiet", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      world.pushed.push(inject("1"), inject("2"))
      const socket = yield* stream(path)
      const start = yield* until(socket, "text 2")
      assert.include(start, "content-type: text/event-stream")
      assert.match(start, /: choir\n\n.*id: 1\n.*text 1.*id: 2\n/su)
      yield* PubSub.publish(world.pushes, inject("3"))
      assert.include(yield* until(socket, "text 3"), "id: 3\n")
      const comment = yield* Effect.forkChild(until(socket, ": choir"), { startImmediately: true })
      yield* TestClock.adjust("15 seconds")
      yield* Fiber.join(comment)
    })
  )

  it.effect("goes on after Last-Event-ID, which must be an id", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      world.pushed.push(inject("1"), inject("2"))
      const text = yield* until(yield* stream(path, { "last-event-id": "1" }), "text 2")
      assert.notInclude(text, "text 1")
      for (const id of ["", "x", "0", "-1", "9999999999999999999", "1; DROP TABLE signals"]) {
        const refused = yield* stream(path, { "last-event-id": id, connection: "close" })
        assert.match(yield* untilClosed(refused), /^HTTP\/1\.1 400 /u)
      }
    })
  )

  it.effect("is one a session: a newer stream ends the older", () =>
    Effect.gen(function* () {
      const { path } = yield* openSession
      const older = yield* stream(path, { connection: "close" })
      yield* until(older, ": choir")
      const ended = yield* Effect.forkChild(untilClosed(older), { startImmediately: true })
      yield* until(yield* stream(path), ": choir")
      yield* Fiber.join(ended)
    })
  )

  it.effect("tells a run with an older configuration at once", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      world.view = { ...world.view, config_version: 0 }
      const text = yield* until(yield* stream(path), "ConfigChanged")
      assert.include(text, '"config_version":1')
      assert.notInclude(text, "id:")
    })
  )

  it.effect("tells each newer configuration while the stream is open", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      const reply = yield* stream(path)
      yield* until(reply, ": choir")
      for (const version of [2, 3]) {
        yield* PubSub.publish(world.versions, version)
        const text = yield* until(reply, `"config_version":${version}`)
        assert.notInclude(text, '"config_version":1')
      }
    })
  )

  it.effect("needs the lease token and the session's own name", () =>
    Effect.gen(function* () {
      const { path, world } = yield* openSession
      const of = (token: string, session: string) =>
        ask(path, {
          method: "GET",
          path: `/events?session_id=${session}`,
          headers: { authorization: `Bearer ${token}` }
        })
      for (const [token, session] of [
        ["nobody", SESSION],
        ["boot", SESSION],
        ["older", SESSION],
        ["lease", OTHER_SESSION]
      ] as const)
        assert.strictEqual((yield* of(token, session)).status, 401)
      assert.lengthOf(world.audit, 4)
    })
  )
})
