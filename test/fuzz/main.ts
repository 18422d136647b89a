/**
 * `npm run fuzz`: mutated requests against the agents' API (R27). The peer is a process of its own, so that the memory is that of choird's
 * layers and their database alone.
 */
import { join } from "node:path"
import { Effect, Layer, Logger } from "effect"
import { Database } from "#src/choird/database/Database.ts"
import { temporaryFolder } from "../support/engines.ts"
import { programOptions } from "../support/programOptions.ts"
import { fuzz } from "./fuzz.ts"

const MIB = 1024 * 1024
const RSS_GROWTH_MIB_MAX = 20

const USAGE = `npm run fuzz -- [options]
Sends mutated requests without a valid token to the agents' API on both transports.
  --requests N    how many (20000)
  --seed N        of the mutations (1)
Fails when one of them changes a row, is answered with 200 or 500, leaves a rejection unhandled, or when memory grows by more than
${RSS_GROWTH_MIB_MAX} MiB after the first tenth.`

const { positive, values } = programOptions(USAGE, {
  requests: { type: "string", default: "20000" },
  seed: { type: "string", default: "1" }
})
const requests = positive("requests", values.requests)
const seed = positive("seed", values.seed)

let rejections = 0
process.on("unhandledRejection", () => void (rejections += 1))

const template = join(import.meta.dirname, "../../dist/postgres-template.tar.gz")
const database = Layer.unwrap(
  Effect.map(temporaryFolder, (folder) => Database.layerEmbedded({ folder: join(folder, "data"), template }))
)
const rss = () => process.memoryUsage().rss / MIB

const began_ms = Date.now()
let warm: number | undefined
let peak = 0
const onThousand = (sent: number) => {
  if (sent < requests / 10) return
  warm ??= rss()
  peak = Math.max(peak, rss())
}
const { asked, changed, statuses, tables } = await Effect.runPromise(
  fuzz({ requests, seed, onThousand }).pipe(Effect.provide([database, Logger.layer([])]), Effect.scoped)
)
const grown = rss() - (warm ?? rss())
const wrong = [
  ...changed.map((row) => `changed: ${row}`),
  ...asked.map((what) => `the lifecycle was asked: ${what}`),
  ...["200", "500"].flatMap((status) =>
    statuses[status] === undefined ? [] : [`${statuses[status]} times ${status}`]
  ),
  ...(rejections > 0 ? [`${rejections} unhandled rejections`] : []),
  ...(grown > RSS_GROWTH_MIB_MAX ? [`memory grew by ${grown.toFixed(1)} MiB`] : [])
]
console.log(`seed ${seed}: ${requests} requests in ${((Date.now() - began_ms) / 1000).toFixed(0)} s`)
console.log(`answers ${JSON.stringify(statuses)}; ${tables} tables compared`)
console.log(
  `RSS ${(warm ?? 0).toFixed(1)} MiB when warm, grown by ${grown.toFixed(1)} MiB, peak ${peak.toFixed(1)} MiB`
)
for (const each of wrong) console.log(each)
console.log(wrong.length === 0 ? "1 passed, 0 failed" : "0 passed, 1 failed")
process.exitCode = wrong.length === 0 ? 0 : 1
