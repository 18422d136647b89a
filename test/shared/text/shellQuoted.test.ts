import { execFileSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"
import { shellQuoted } from "#src/shared/text/shellQuoted.ts"

describe("a word of a command to paste", () => {
  const words = [
    "",
    "/srv/choir",
    "/srv/my home",
    "it's",
    "$(touch x)",
    "a;b",
    "~",
    "*",
    "a  b\tc",
    "\\'\"",
    "`id`",
    "#x"
  ]
  it("is read by a shell as the same text", () => {
    const command = `printf '%s\\0' ${words.map(shellQuoted).join(" ")}`
    assert.deepStrictEqual(
      execFileSync("/bin/sh", ["-c", command], { encoding: "utf8" }).split("\0").slice(0, -1),
      words
    )
  })

  it("stays as it is where a shell would not change it", () => {
    assert.strictEqual(shellQuoted("/srv/choir-2.before-restore-2026"), "/srv/choir-2.before-restore-2026")
  })
})
