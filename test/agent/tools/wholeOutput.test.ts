import { createHash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import { EDGE } from "#schema/Ids.ts"
import { jsonBytes, TOOL_RESULT_BYTES_MAX } from "#src/agent/model/prompt/inlineResult.ts"
import { resultFile, WHOLE_OUTPUT_BYTES_MAX, wholeOutputNote } from "#src/agent/model/prompt/toolText.ts"
import { exec } from "#src/agent/tools/exec.ts"
import { fsRead } from "#src/agent/tools/fsRead.ts"
import type { ToolOutcome } from "#src/agent/tools/Tool.ts"
import { keepWholeOutput, RESULT_FILES_MAX } from "#src/agent/tools/wholeOutput.ts"
import { Workspace } from "#src/agent/workspace/Workspace.ts"
import { externalTool } from "../../support/externalTool.ts"
import { laneThatSaw, temporaryWorkspace, toolServices } from "../../support/workspace.ts"

const LONG = Array.from({ length: 40_000 }, (_, line) => `line ${line}`).join("\n")
const FILE = /\.choirtmp\/results\/[0-9a-f]{32}\.(txt|json)/u

const keeper = Effect.gen(function* () {
  const { root, outside } = yield* temporaryWorkspace
  const services = yield* toolServices(root)
  const workspace = yield* Effect.provideContext(Effect.service(Workspace), services)
  const keep = (output: Schema.Json) => keepWholeOutput(workspace, { status: "success", summary: "s", output })
  return { root, outside, services, keep }
})

/** The path that an output names. */
const pathIn = ({ output }: ToolOutcome): string => FILE.exec(JSON.stringify(output))?.[0] ?? ""
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex")

describe("keepWholeOutput", () => {
  it.effect("leaves an output alone that a prompt shows whole (R48)", () =>
    Effect.gen(function* () {
      const { keep, root } = yield* keeper
      const output = "x".repeat(WHOLE_OUTPUT_BYTES_MAX - 2)
      assert.deepStrictEqual(yield* keep(output), { status: "success", summary: "s", output })
      assert.deepStrictEqual(readdirSync(root), [])
    })
  )

  it.effect("keeps one that fits its event whole in both, and a text and a list as they are", () =>
    Effect.gen(function* () {
      const { keep, root } = yield* keeper
      const text = "x".repeat(WHOLE_OUTPUT_BYTES_MAX)
      for (const output of [text, [text]]) {
        const kept = yield* keep(output)
        assert.deepStrictEqual(kept.output, output)
        const path = resultFile(kept.artifact_ref ?? "", typeof output === "string")
        assert.include(readFileSync(join(root, path), "utf8"), text)
      }
      const kept = yield* keep({ text })
      assert.deepStrictEqual(kept.output, { text, whole_output: wholeOutputNote(pathIn(kept)) })
    })
  )

  it.effect("keeps all of a longer one in a file of its owner alone, with the hash of its bytes (R48)", () =>
    Effect.gen(function* () {
      const { keep, root } = yield* keeper
      const kept = yield* keep({ exit_code: 1, stdout: LONG, stderr: "warned" })
      assert.isAtMost(jsonBytes(kept.output ?? null), TOOL_RESULT_BYTES_MAX)
      const path = join(root, pathIn(kept))
      const bytes = readFileSync(path)
      assert.strictEqual(bytes.toString(), `{"exit_code":1,"stderr":"warned"}\n==> stdout <==\n${LONG}`)
      assert.strictEqual(kept.artifact_ref, sha256(bytes))
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
      assert.deepInclude(kept.output, { exit_code: 1, stderr: "warned" })
      assert.include(JSON.stringify(kept.output), `all of it is in ${pathIn(kept)}`)
    })
  )

  const shapes: Readonly<Record<string, readonly [Schema.Json, (text: string) => unknown]>> = {
    "a text": [LONG, (text) => text],
    "a list": [LONG.split("\n"), (text) => JSON.parse(text)],
    "an object with long lists": [{ lines: LONG.split("\n"), ok: true }, (text) => JSON.parse(text)],
    "an object of many small members": [
      Object.fromEntries(LONG.split("\n").map((line) => [line, line])),
      (text) => JSON.parse(text)
    ],
    "a member that is called __proto__": [JSON.parse(`{"__proto__":[1],"a":[${"1,".repeat(200_000)}1]}`), JSON.parse]
  }
  for (const [shape, [output, read]] of Object.entries(shapes))
    it.effect(`keeps ${shape} whole, in lines`, () =>
      Effect.gen(function* () {
        const { keep, root } = yield* keeper
        const kept = yield* keep(output)
        assert.isAtMost(jsonBytes(kept.output ?? null), TOOL_RESULT_BYTES_MAX)
        const text = readFileSync(join(root, pathIn(kept)), "utf8")
        assert.deepStrictEqual(read(text), output)
        assert.isAbove(text.split("\n").length, 1000)
      })
    )

  it.effect("does not blow a deep value up by its indentation", () =>
    Effect.gen(function* () {
      const { keep, root } = yield* keeper
      const deep = JSON.parse(`${"[".repeat(150)}${"1,".repeat(200_000)}1${"]".repeat(150)}`)
      const kept = yield* keep(deep)
      assert.isBelow(statSync(join(root, pathIn(kept))).size, 500_000)
    })
  )

  it.effect("gives the same result for the same output, so that repetitions are seen (E11)", () =>
    Effect.gen(function* () {
      const { keep, root } = yield* keeper
      assert.deepStrictEqual(yield* keep(LONG), yield* keep(LONG))
      assert.strictEqual(readdirSync(join(root, ".choirtmp/results")).length, 1)
    })
  )

  it.effect("keeps the newest results and no more than the limit (R49)", () =>
    Effect.gen(function* () {
      const { keep, root } = yield* keeper
      const paths: Array<string> = []
      for (let round = 0; round < RESULT_FILES_MAX + 6; round++) {
        paths.push(pathIn(yield* keep(`${round} ${LONG}`)))
        utimesSync(join(root, paths[round] ?? ""), round, round)
      }
      const left = readdirSync(join(root, ".choirtmp/results"))
      assert.strictEqual(left.length, RESULT_FILES_MAX)
      assert.sameMembers(
        left.map((name) => `.choirtmp/results/${name}`),
        paths.slice(-RESULT_FILES_MAX)
      )
    })
  )

  it.effect("loses no result when its file cannot be written", () =>
    Effect.gen(function* () {
      const obstacles: ReadonlyArray<(root: string, outside: string) => void> = [
        (root, outside) => symlinkSync(outside, join(root, ".choirtmp")),
        (root, outside) => {
          mkdirSync(join(root, ".choirtmp"))
          symlinkSync(outside, join(root, ".choirtmp/results"))
        },
        (root) => writeFileSync(join(root, ".choirtmp"), "a file"),
        (root) => rmSync(root, { recursive: true })
      ]
      for (const obstruct of obstacles) {
        const { keep, root, outside } = yield* keeper
        obstruct(root, outside)
        const kept = yield* keep({ stdout: LONG, exit_code: 0 })
        assert.notProperty(kept, "artifact_ref")
        assert.deepInclude(kept.output, { exit_code: 0 })
        assert.match(JSON.stringify(kept.output), /line 0.*characters left out.*line 39999/u)
        assert.deepStrictEqual(readdirSync(outside), ["file"])
      }
    })
  )

  it.live("is what choir.exec and external tools do, and choir.fs.read shows the file", () =>
    Effect.gen(function* () {
      const { root, services } = yield* keeper
      const context = { ...laneThatSaw(), lane: EDGE }
      const shell = yield* Effect.provideContext(exec, services)
      const ran = yield* (yield* shell.prepare({ command: "seq 100000; echo last >&2" })).run(context)
      assert.strictEqual(ran.artifact_ref, sha256(readFileSync(join(root, pathIn(ran)))))
      const reader = yield* Effect.provideContext(fsRead, services)
      const shown = yield* (yield* reader.prepare({ path: pathIn(ran), lines: "99990-99990" })).run(context)
      assert.deepInclude(shown.output, { content: "99988\n" })

      const print = "printf '['; seq -s, 100000; printf ']'"
      const tool = yield* externalTool(print)
      const printed = yield* tool.run()
      assert.strictEqual(JSON.parse(readFileSync(join(tool.root, pathIn(printed)), "utf8")).length, 100_000)
      const masked = yield* externalTool(print, { runtime: { prompt_mask: true } })
      assert.notProperty(yield* masked.run(), "artifact_ref")
      assert.deepStrictEqual(readdirSync(masked.root), [])
    })
  )
})
