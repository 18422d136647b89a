import { execFileSync } from "node:child_process"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { orLastGood } from "#src/choird/reconfiguration/LastGood.ts"
import { CONFIG_FILE, ConfigRefused, LAST_GOOD_FILE } from "#src/shared/config/configFiles.ts"
import { temporaryFolder } from "../../support/engines.ts"

const PROGRAM = new URL("../../../src/choird/reconfiguration/LastGood.ts", import.meta.url).pathname
const EFFECT = import.meta.resolve("effect")
const FILES = import.meta.resolve("@effect/platform-node/NodeFileSystem")

/** Keeps a configuration of about so many bytes, in a process whose files have at most `kib` KiB: then a write takes a part. */
const keep = (home: string, bytes: number, kib: number | "unlimited") => {
  const config = JSON.stringify({ filler: "x".repeat(bytes) })
  const script = `const { Effect } = await import(${JSON.stringify(EFFECT)})
    const { keepLastGood } = await import(${JSON.stringify(PROGRAM)})
    const { layer } = await import(${JSON.stringify(FILES)})
    await Effect.runPromise(Effect.provide(keepLastGood(${JSON.stringify(home)}, ${config}), layer))`
  const limited = `trap "" XFSZ; ulimit -f ${kib}; exec "$0" --input-type=module -e "$1"`
  return execFileSync("bash", ["-c", limited, process.execPath, script], { encoding: "utf8" })
}

describe("the last good configuration", () => {
  it.effect("is never half of one: where the disk takes a part, what was kept before stays (R59)", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const place = join(home, LAST_GOOD_FILE)
      keep(home, 10, "unlimited")
      const before = readFileSync(place, "utf8")
      assert.deepStrictEqual(JSON.parse(before), { filler: "x".repeat(10) })
      assert.strictEqual(statSync(place).mode & 0o777, 0o600)
      assert.match(keep(home, 20_000, 8), /could not be kept as the last good one.*EFBIG/su)
      assert.strictEqual(readFileSync(place, "utf8"), before)
    })
  )

  it.effect("is offered for a broken config.json alone, and only where there is one", () =>
    Effect.gen(function* () {
      const home = yield* temporaryFolder
      const refused = (file: string) =>
        orLastGood(home)(new ConfigRefused({ file: join(home, file), problems: [], hint: "edit it" }))
      assert.strictEqual(refused(CONFIG_FILE).hint, "edit it")
      writeFileSync(join(home, LAST_GOOD_FILE), "{}")
      assert.include(refused(CONFIG_FILE).hint, "--last-good")
      assert.strictEqual(refused("secrets.json").hint, "edit it")
    })
  )
})
