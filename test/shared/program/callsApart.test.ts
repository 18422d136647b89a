import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { apartFrom, probeApart, weakestApart } from "#src/shared/program/callsApart.ts"
import { temporaryFolder } from "../../support/engines.ts"

/** A program that answers as the real one does on a kernel with this version of Landlock; `denies` are modes that something around it denies. */
const onKernel = Effect.fnUntraced(function* (version: number, denies: ReadonlyArray<number> = []) {
  const path = join(yield* temporaryFolder, "choir-agent.apart")
  const denied = denies.map((mode) => `[ "$1" = ${mode} ] && exit 126`)
  writeFileSync(path, ["#!/bin/sh", `[ $# -lt 2 ] && exit ${version}`, ...denied, 'shift; exec "$@"', ""].join("\n"))
  chmodSync(path, 0o755)
  return path
})

describe("how far calls can be kept apart", () => {
  it.live("follows from the version of Landlock, if that really works", () =>
    Effect.gen(function* () {
      for (const [version, denies, level] of [
        [7, [], "full"],
        [6, [], "full"],
        [5, [], "memory"],
        [2, [], "memory"],
        [1, [], "none"],
        [0, [], "none"],
        [7, [4], "none"],
        [3, [2], "none"]
      ] as const) {
        const program = yield* onKernel(version, denies)
        assert.deepStrictEqual(probeApart(program), { program, level }, `${version} ${denies.join()}`)
      }
      assert.deepStrictEqual(probeApart("/does/not/exist"), { level: "none" })
    })
  )

  it("decides how a command is started, and needs no program where nothing is wanted of it", () => {
    const program = "/p"
    assert.deepStrictEqual(apartFrom({ program, level: "full" }, { folders: false, offline: true }), [program, "5"])
    assert.deepStrictEqual(apartFrom({ program, level: "full" }, { folders: false, offline: false }), [program, "4"])
    assert.deepStrictEqual(apartFrom({ program, level: "memory" }, { folders: false, offline: true }), [program, "3"])
    assert.deepStrictEqual(apartFrom({ program, level: "none" }, { folders: false, offline: true }), [program, "1"])
    assert.deepStrictEqual(apartFrom({ program, level: "none" }, { folders: false, offline: false }), [])
    assert.deepStrictEqual(apartFrom({ level: "none" }, { folders: false, offline: false }), [])
  })

  it("is for several agents what holds for all", () => {
    assert.strictEqual(weakestApart(["full", "memory", "full"]), "memory")
    assert.strictEqual(weakestApart(["full", "none"]), "none")
    assert.isUndefined(weakestApart([]))
  })
})
