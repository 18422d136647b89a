/** A command that leaves a setuid program in the workspace, where other users of the host could run it. */
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sandboxes, startAgent } from "../support/sandboxedAgent.ts"
import { LIVE } from "../choird/runtime/rig.ts"
import { sandboxReason } from "../choird/runtime/runtimes.ts"

const arm = process.arch === "arm64"
/** A system call by its numbers; `null` where this machine has no such call. */
const call = (name: string, x64: number, arm64: number | null, ...args: ReadonlyArray<string>) => {
  const number = arm ? arm64 : x64
  const code = `@a = (${args.join(", ")}); print syscall(${number}, @a) >= 0 ? "made" : "errno " . ($!+0)`
  return number === null ? [] : [[name, `perl -e '${code}'`] as const]
}
const HERE = "-100"
/** A struct open_how: O_CREAT | O_WRONLY, 04755. */
const HOW = 'pack("QQQ", 0101, 04755, 0)'

const WAYS = [
  ["chmod(1)", "chmod 4755 program; chmod u+s,g+s program"],
  ["install(1)", "install -m 6755 /usr/bin/id installed"],
  ["cp(1) with modes", "cp --preserve=mode /usr/bin/su copied"],
  ["Python", "python3 -c 'import os; os.open(\"py\", os.O_CREAT | os.O_WRONLY, 0o4755)'"],
  ...call("chmod", 90, null, '"program"', "04755"),
  ...call("fchmodat", 268, 53, HERE, '"program"', "06755"),
  ...call("fchmodat2", 452, 452, HERE, '"program"', "04755", "0"),
  ...call("creat", 85, null, '"creat"', "04755"),
  ...call("open", 2, null, '"open"', "0101", "04755"),
  ...call("openat", 257, 56, HERE, '"openat"', "0101", "04755"),
  ...call("an unnamed file", 257, 56, HERE, '"."', "020200001", "04755"),
  ...call("openat2", 437, 437, HERE, '"openat2"', HOW, "24"),
  ...call("mknodat", 259, 33, HERE, '"node"', "0104755", "0")
] as const

describe.skipIf(sandboxReason !== undefined)("a command that wants a setuid program", LIVE, () => {
  const { inside } = sandboxes()

  it.live(`gets none on the host by any of ${WAYS.length} ways`, () =>
    Effect.gen(function* () {
      const { agent, spec } = yield* startAgent
      yield* agent.sh("cp /usr/bin/id program")
      const setId = () =>
        readdirSync(spec.workspace).filter((name) => (statSync(join(spec.workspace, name)).mode & 0o6000) !== 0)
      for (const [name, command] of WAYS) {
        assert.notStrictEqual(yield* agent.sh(command), "made", name)
        assert.deepStrictEqual(setId(), [], name)
      }
      assert.strictEqual(
        yield* agent.sh("chmod 1755 program && umask 022 && touch new && mkdir -m 0775 folder && echo works"),
        "works"
      )
    }).pipe(inside)
  )
})
