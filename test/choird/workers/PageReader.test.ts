import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { deflateSync } from "node:zlib"
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

/** A PDF of some kilobytes whose only page unpacks to more than a gigabyte, outside of the heap. */
const bombOf = (bytes: number) => {
  const twice = deflateSync(deflateSync(Buffer.alloc(bytes, " ")))
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
    `<< /Length ${twice.length} /Filter [/FlateDecode /FlateDecode] >>\nstream\n${twice.toString("latin1")}\nendstream`
  ].map((object, index) => `${index + 1} 0 obj\n${object}\nendobj\n`)
  return Buffer.from(`%PDF-1.7\n${objects.join("")}trailer\n<< /Size 5 /Root 1 0 R >>\n%%EOF\n`, "latin1")
}

describe("a PDF that unpacks to more than its process may have", () => {
  it.live("is refused for its memory, long before its time is over", () =>
    Effect.gen(function* () {
      const { read } = yield* PageReader
      const refused = yield* Effect.flip(read({ url: "http://site.test/", form: "pdf" }, bombOf(1_200_000_000)))
      assert.strictEqual(refused.problem, "it takes too much memory")
    }).pipe(Effect.provide(PageReader.layer()))
  )
})
