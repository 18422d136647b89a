import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { PageReader } from "#src/choird/workers/PageReader.ts"
import { temporaryFolder } from "../../support/engines.ts"
import { processesNaming } from "../../support/processes.ts"

/** A program that is never done with its page. */
const ENDLESS = `process.stdout.write('{"_tag":"Ready"}\\n')
process.stdin.resume().on("end", () => { for (;;); })
`

describe("a page that takes too long", () => {
  it.live("is refused, and its process ends, so that it costs nothing from then on", () =>
    Effect.gen(function* () {
      const program = join(yield* temporaryFolder, "endless.mjs")
      writeFileSync(program, ENDLESS)
      const layer = PageReader.layer({ pageMs: 1, program: pathToFileURL(program) })
      const reading = Effect.flatMap(PageReader, ({ read }) =>
        read({ url: "http://site.test/", form: "html" }, Buffer.from("<p>x"))
      )
      const refused = yield* Effect.flip(Effect.provide(reading, layer))
      assert.include(refused.message, "it takes more than 1 ms")
      const left = Effect.sync(() => processesNaming(program))
      yield* Effect.repeat(left, { until: (pids) => pids.length === 0, schedule: Schedule.spaced("10 millis") })
    }).pipe(Effect.scoped)
  )
})
