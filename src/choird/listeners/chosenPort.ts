/**
 * The port that the kernel chose for the agents' listener, kept in the home. choird takes it again at its next start: a container that
 * outlived it asks where it was told to, and has to be heard before it is removed (D15).
 */
import { mkdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Effect } from "effect"
import type { ListenRefused } from "#src/shared/wire/tcp.ts"
import { writeWhole } from "#src/shared/files/writeWhole.ts"

const placeOf = (home: string) => join(home, "socks", "agents.port")

const isPort = (port: number) => port > 0 && port < 65_536

/** Nothing when there is no such file, or something else stands in it. */
const kept = (home: string) =>
  Effect.try(() => readFileSync(placeOf(home), "utf8")).pipe(
    Effect.map((text) => (/^\d{1,5}\n$/u.test(text) && isPort(Number(text)) ? Number(text) : undefined)),
    Effect.orElseSucceed(() => undefined)
  )

/** For its owner alone, and whole or not at all. A disk that does not take it keeps nobody from working. */
const keep = (home: string, port: number) =>
  Effect.try(() => {
    const place = placeOf(home)
    mkdirSync(dirname(place), { recursive: true, mode: 0o700 })
    writeWhole(place, `${port}\n`)
  }).pipe(
    Effect.catch(({ cause }) => Effect.logWarning("the port of the agents' API could not be kept", String(cause)))
  )

/**
 * Listens on the port of before, or on one that the kernel chooses when there was none or it is not free any more.
 *
 * @param listen binds a port, 0 for any, and answers which it is.
 */
export const listenOnChosen = Effect.fn("chosenPort.listen")(function* <R>(
  home: string,
  listen: (port: number) => Effect.Effect<number, ListenRefused, R>
) {
  const before = yield* kept(home)
  const port = yield* before === undefined
    ? listen(0)
    : Effect.catch(listen(before), ({ code }) =>
        Effect.andThen(
          Effect.logWarning(
            `port ${before}, which agents were told, cannot be had again (${code}): one that outlived an earlier choird cannot send what it did since`
          ),
          listen(0)
        )
      )
  if (port !== before) yield* keep(home, port)
  return port
})
