/** P12: what an installation takes of our own JavaScript. */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { ROOT } from "../test/support/installation.ts"
import { atMost, type Row } from "./Row.ts"

export const size: Effect.Effect<ReadonlyArray<Row>, unknown> = Effect.sync(() => {
  const folder = join(ROOT, "dist")
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" })
  const bytes = names
    .filter((name) => name.endsWith(".js"))
    .reduce((total, name) => total + statSync(join(folder, name)).size, 0)
  const native = names.filter((name) => name.endsWith(".node")).length
  return [
    atMost("P12", "our JavaScript, all programs", bytes / 2 ** 20, "MiB", 10),
    atMost("P12", "native modules of ours", native, "files", 0)
  ]
})
