import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync, watch, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { conflicts, makeClaim, makeLockset } from "#src/agent/calls/locks.ts"
import { externalTool, secretsMap } from "../../support/externalTool.ts"
import { processesNaming } from "../../support/processes.ts"

const CANARY = 'canary-"quoted"/7f3a9+é'
const takes = (...names: ReadonlyArray<string>) => ({ runtime: { secret_resources: names } })

/** Starts a tool whose script waits at the named pipe `gate`, and continues when it stands there. */
const atTheGate = Effect.fnUntraced(function* <A, E>(root: string, run: Effect.Effect<A, E>) {
  execFileSync("mkfifo", [join(root, "gate")])
  const fiber = yield* Effect.forkChild(run)
  yield* Effect.callback<void>((resume) => {
    const look = () => {
      if (existsSync(join(root, "ready"))) resume(Effect.void)
    }
    const watcher = watch(root, look)
    look()
    return Effect.sync(() => watcher.close())
  })
  const open = Effect.andThen(
    Effect.sync(() => writeFileSync(join(root, "gate"), "go\n")),
    Fiber.join(fiber)
  )
  return { open }
})

const WAIT = "[ -e ready ] || { touch ready; read line <gate; }"

/** The environments of all processes. */
const environments = () =>
  readdirSync("/proc")
    .filter((name) => /^[0-9]+$/u.test(name))
    .map((pid) => {
      const text = Result.try({ try: () => readFileSync(`/proc/${pid}/environ`, "utf8"), catch: () => undefined })
      return Result.getOrElse(text, () => "")
    })
    .join("\n")

/** Prints how long each value is, which no scrubbing hides. */
const LENGTHS = `exec python3 -c '
import json, os
print(json.dumps({k: len(v) for k, v in json.load(os.fdopen(int(os.environ["CHOIR_SECRETS_FD"]))).items()}))'`

describe("the secrets of an external tool", () => {
  it.live("are those that its manifest names, under these names, and no other", () =>
    Effect.gen(function* () {
      const secrets = { notion: CANARY, mail: "user:password", other: "other-secret" }
      const { run } = yield* externalTool(LENGTHS, { ...takes("notion", "mail"), secrets })
      assert.deepStrictEqual((yield* run()).output, { notion: CANARY.length, mail: 13 })
    })
  )

  it.live("are not handed to a tool that names none", () =>
    Effect.gen(function* () {
      const script = 'test -e /proc/$$/fd/3 && echo 1 || echo "[\\"$CHOIR_SECRETS_FD\\"]"'
      const { run } = yield* externalTool(script, { secrets: { notion: CANARY } })
      assert.deepStrictEqual((yield* run()).output, [""])
    })
  )

  it.live("stand in no environment, no argument and no file while the tool runs (R32)", () =>
    Effect.gen(function* () {
      const { root, run } = yield* externalTool(`${WAIT}; echo 1`, { ...takes("notion"), secrets: { notion: CANARY } })
      const { open } = yield* atTheGate(root, run())
      const environment = environments()
      assert.include(environment, "CHOIR_SECRETS_FD=3")
      assert.notInclude(environment, "canary-")
      assert.deepStrictEqual(processesNaming("canary-"), [])
      assert.sameMembers(readdirSync(root), ["gate", "ready"])
      assert.strictEqual((yield* open).status, "success")
    })
  )

  it.live("are scrubbed from output, summary and standard error, plain and encoded (R32)", () =>
    Effect.gen(function* () {
      const dump = `exec python3 -c '
import base64, json, os, sys, urllib.parse
value = json.load(os.fdopen(3))["notion"]
forms = {"plain": value, "base64": base64.b64encode(value.encode()).decode(), "hex": value.encode().hex(),
  "url": urllib.parse.quote(value, safe=""), "json": json.dumps(value), "basic": base64.b64encode(("me:" + value).encode()).decode()}
if json.load(sys.stdin).get("fail"):
  print(*forms.values(), sep="\\n", file=sys.stderr)
  sys.exit(1)
print(json.dumps({"status": "success", "summary": "sent " + value, "output": {**forms, value: [value]}}))'`
      const { run } = yield* externalTool(dump, { ...takes("notion"), secrets: { notion: CANARY } })
      for (const outcome of [yield* run(), yield* run({ fail: true })]) {
        const text = JSON.stringify(outcome)
        const forms = [CANARY, JSON.stringify(CANARY).slice(1, -1), encodeURIComponent(CANARY)]
        const bytes = Buffer.from(CANARY)
        for (const form of [...forms, bytes.toString("base64"), bytes.toString("hex"), "canary"])
          assert.notInclude(text, form)
        assert.include(text, "<redacted>")
      }
    })
  )

  it.live("are refreshed for the next call, while a running call keeps its own (R35)", () =>
    Effect.gen(function* () {
      const secrets = { notion: "first" }
      const { root, run, store } = yield* externalTool(`${WAIT}; ${LENGTHS}`, { ...takes("notion"), secrets })
      const { open } = yield* atTheGate(root, run())
      yield* store.replaceAll(secretsMap({ notion: "the second" }))
      assert.deepStrictEqual((yield* run()).output, { notion: 10 })
      assert.deepStrictEqual((yield* open).output, { notion: 5 })
    })
  )

  it.live("that are gone make the call an error that says what to do", () =>
    Effect.gen(function* () {
      const { run, store } = yield* externalTool("echo 1", { ...takes("notion"), secrets: { notion: CANARY } })
      yield* store.replaceAll(new Map())
      const { status, summary } = yield* run()
      assert.strictEqual(status, "error")
      assert.match(summary, /"notion" is not available: .*choirctl secret set notion/u)
    })
  )

  it.effect("keep choir.exec waiting while they are in another process's memory (D13)", () =>
    Effect.gen(function* () {
      const locksOf = Effect.fnUntraced(function* (runtime: object) {
        const { tool } = yield* externalTool("echo 1", { runtime })
        return Result.getOrThrow(makeLockset((yield* tool.prepare({})).locks))
      })
      const exec = makeClaim(
        LaneId.make("core:a"),
        Result.getOrThrow(makeLockset([{ resource: "workspace", mode: "X" }]))
      )
      const [bare, secret] = [yield* locksOf({}), yield* locksOf({ secret_resources: ["notion"] })]
      assert.isFalse(conflicts(makeClaim(EDGE, bare), exec))
      assert.isTrue(conflicts(makeClaim(EDGE, secret), exec))
      assert.isFalse(conflicts(makeClaim(EDGE, secret), makeClaim(LaneId.make("core:a"), secret)))
    })
  )
})
