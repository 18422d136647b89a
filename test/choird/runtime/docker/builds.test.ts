import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema } from "effect"
import { Readable } from "node:stream"
import { TestClock } from "effect/testing"
import { buffer } from "node:stream/consumers"
import { createHash } from "node:crypto"
import { RuntimeConfig } from "#schema/Config.ts"
import { AgentId } from "#schema/Ids.ts"
import { ImageVersion } from "#schema/Image.ts"
import {
  BUILD_OUTPUT_BYTES_MAX,
  BuildBroke,
  buildContext,
  type ContextEntry,
  IMAGE_BUILD_MS_MAX,
  runBuild
} from "#src/choird/runtime/docker/runBuild.ts"
import {
  BUILD_LINE_CHARS_MAX,
  BUILD_LINES_SHOWN_MAX,
  BUILD_TAIL_LINES,
  makeBuildReader
} from "#src/choird/runtime/docker/buildEvents.ts"
import { DockerEngine } from "#src/choird/runtime/docker/DockerEngine.ts"
import { failedBuild } from "#src/choird/runtime/docker/failedBuild.ts"
import { imageProblem } from "#src/choird/runtime/docker/imageChecks.ts"

const event = (stream: string) => JSON.stringify({ stream })
const IMAGE = `sha256:${"0a".repeat(32)}`

describe("builds in the engine", () => {
  it("show steps and what programs print, as plain text, and not the builder's own talk", () => {
    const { outcome, push } = makeBuildReader()
    const shown = [
      event("Step 1/2 : FROM choir-base\n"),
      event(" ---> 0a0a0a0a0a0a\n"),
      event("Step 2/2 : RUN x\n"),
      event(" ---> Running in 0b0b0b0b0b0b\n"),
      event("\u001B[31mred\u001B[0m 10%\r20%\u0007\nlast\u202E\n"),
      JSON.stringify({ status: "Downloading", progressDetail: { current: 1 }, id: "x" }),
      event("Removing intermediate container 0b0b0b0b0b0b\n"),
      JSON.stringify({ aux: { ID: IMAGE } }),
      event("Successfully built 0a0a0a0a0a0a\n"),
      ""
    ].flatMap((line) => push(line) ?? ["refused"])
    assert.deepStrictEqual(shown, ["Step 1/2 : FROM choir-base", "Step 2/2 : RUN x", "red 10%", "20%", "last"])
    const end = { image_id: IMAGE, error: undefined, step: "RUN x", tail: ["red 10%", "20%", "last"] }
    assert.deepStrictEqual(outcome(), end)
  })

  it("refuse what is not an event, and an id that is not one", () => {
    const { push } = makeBuildReader()
    for (const line of ["{", "[]", "null", `{"stream":1}`, `{"error":{}}`, `{"aux":{"ID":"sha256:../x"}}`, "Step 1/1"])
      assert.isUndefined(push(line), line)
  })

  it("keep the first error, the end of the last step, and a limited number of lines of limited length", () => {
    const { outcome, push } = makeBuildReader()
    push(event("Step 1/2 : RUN a"))
    push(event("of the first step"))
    push(event("Step 2/2 : RUN b"))
    let shown = 0
    for (let line = 0; line <= BUILD_LINES_SHOWN_MAX; line += 1) shown += push(event(`line ${line}`))?.length ?? 0
    assert.strictEqual(shown, BUILD_LINES_SHOWN_MAX - 3)
    assert.deepStrictEqual(push(event("Step 3/3 : RUN c")), ["Step 3/3 : RUN c"])
    push(event("x".repeat(10 * BUILD_LINE_CHARS_MAX)))
    for (let line = 0; line < 2 * BUILD_TAIL_LINES; line += 1) push(event(`${line}`))
    push(JSON.stringify({ error: "first", errorDetail: { code: 1 } }))
    push(JSON.stringify({ error: "second" }))
    assert.deepStrictEqual([outcome().error, outcome().step], ["first", "RUN c"])
    assert.strictEqual(outcome().tail.length, BUILD_TAIL_LINES)
    assert.strictEqual(outcome().tail.at(-1), `${2 * BUILD_TAIL_LINES - 1}`)
  })

  it.effect("get the same context of the same files, of any owner and age", () =>
    Effect.gen(function* () {
      const entries: ReadonlyArray<ContextEntry> = [
        { name: "bin", mode: 0o755, content: "folder" },
        { name: "bin/node", mode: 0o111, content: { path: import.meta.filename, bytes: 100_000 } },
        { name: "a", mode: 0o644, content: Buffer.from("a") }
      ]
      const small = entries.filter(({ name }) => name !== "bin/node")
      const digest = Effect.gen(function* () {
        const { fill, stream } = yield* buildContext(small)
        const filling = yield* Effect.forkChild(fill)
        const bytes = yield* Effect.promise(() => buffer(stream))
        yield* Fiber.join(filling)
        return createHash("sha256").update(bytes).digest("hex")
      }).pipe(Effect.scoped)
      assert.strictEqual(yield* digest, yield* digest)
      const { fill, stream } = yield* buildContext(entries)
      stream.on("error", () => undefined).resume()
      assert.match((yield* Effect.flip(fill)).message, /cannot be read: size mismatch/iu)
    })
  )

  it.effect("end when they print without end, and when they never end", () =>
    Effect.gen(function* () {
      const request = {
        what: "x",
        entries: [],
        dockerfile: "Dockerfile",
        network: false,
        memory_mb: 256,
        cpus: 1,
        nocache: false
      }
      const build = (answer: Readable) => {
        const use = () => Effect.succeed(answer)
        return Effect.provide(
          runBuild(request, () => Effect.void),
          Layer.mock(DockerEngine, { use: use as never })
        )
      }
      const line = `${JSON.stringify({ stream: "x".repeat(60_000) })}\n`
      const endless = Readable.from(
        (function* () {
          for (;;) yield Buffer.from(line)
        })()
      )
      const loud = yield* Effect.flip(build(endless))
      assert.strictEqual(loud.message, `it printed more than ${BUILD_OUTPUT_BYTES_MAX} bytes`)
      assert.isTrue(endless.destroyed)
      const silent = new Readable({ read: () => undefined })
      const fiber = yield* Effect.forkChild(Effect.flip(build(silent)), { startImmediately: true })
      yield* TestClock.adjust(IMAGE_BUILD_MS_MAX)
      assert.strictEqual((yield* Fiber.join(fiber)).message, "it took longer than 30 minutes")
      assert.isTrue(silent.destroyed)
    })
  )

  it("say what fixes them: no room on the disk, no memory, no image, no network", () => {
    const source = {
      agent_id: AgentId.make("a"),
      image_version: ImageVersion.make("0123456"),
      path: "/",
      compiled: [],
      base: [],
      agent: []
    }
    const runtime = Schema.decodeSync(RuntimeConfig)({})
    const fix = (problem: string, ...output: ReadonlyArray<string>) =>
      failedBuild(source, new BuildBroke({ problem, output }), runtime).fix
    assert.match(fix("write /x: no space left on device"), /^Make room on the engine's disk/u)
    assert.match(fix("exited", "cp: error writing '/x': No space left on device"), /^Make room on the engine's disk/u)
    assert.match(fix("The command '/bin/sh -c x' returned a non-zero code: 137"), /runtime.memory_mb/u)
    assert.match(fix("pull access denied for nothing, repository does not exist"), /docker pull/u)
    assert.match(fix("returned a non-zero code: 100", "Could not resolve 'deb.debian.org'"), /runtime.build_network/u)
    assert.match(fix("returned a non-zero code: 2", "make: error"), /^Correct the Dockerfile/u)
  })

  it("refuse a base with triggers, volumes, ports or health checks, and reserved variables (D24, R36)", () => {
    const problem = (Config: object) => imageProblem({ Id: IMAGE, Config })
    assert.isUndefined(problem({ Env: ["PATH=/bin", "NODES=1"], Volumes: null, OnBuild: [], ExposedPorts: {} }))
    assert.match(problem({ Env: ["LD_PRELOAD=/x.so"] }) ?? "", /LD_PRELOAD/u)
    assert.match(problem({ Env: ["CHOIR_BOOTSTRAP_TOKEN=x"] }) ?? "", /CHOIR_BOOTSTRAP_TOKEN/u)
    assert.match(problem({ Volumes: { "/data": {} } }) ?? "", /volume/u)
    assert.match(problem({ OnBuild: ["RUN x"] }) ?? "", /ONBUILD/u)
    assert.match(problem({ ExposedPorts: { "80/tcp": {} } }) ?? "", /port/u)
    assert.match(problem({ Healthcheck: { Test: ["CMD", "x"] } }) ?? "", /health check/u)
  })
})
