import { assert, describe, it } from "@effect/vitest"
import { Random, Effect, Result } from "effect"
import { EDGE, LaneId } from "#schema/Ids.ts"
import { LockRequest } from "#schema/Tool.ts"
import {
  type Claim,
  conflicts,
  dirtyReads,
  EMPTY_TABLE,
  enqueue,
  type LockTable,
  makeClaim,
  makeLockset,
  obstacles,
  release
} from "#src/agent/calls/locks.ts"
import {
  fileKey,
  INVALID_LOCK_CHARS_MAX,
  LOCKSET_LOCKS_MAX,
  WORKSPACE_PATH_BYTES_MAX
} from "#src/shared/image/lockKey.ts"

const CORE = LaneId.make("core:a")
const OTHER_CORE = LaneId.make("core:b")

/** Reads `file:a S, choirtmp X`. */
const requests = (text: string): ReadonlyArray<LockRequest> =>
  text === ""
    ? []
    : text.split(", ").map((lock) => {
        const [resource = "", mode] = lock.split(" ")
        return LockRequest.make({ resource, mode: mode === "X" ? "X" : "S" })
      })
const claim = (lane: LaneId, text: string): Claim => makeClaim(lane, Result.getOrThrow(makeLockset(requests(text))))
const keys = (text: string) =>
  Result.getOrThrow(makeLockset(requests(text))).map(({ request }) => `${request.resource} ${request.mode}`)
const table = (...claims: ReadonlyArray<Claim>) =>
  claims.reduce<LockTable<Claim>>((before, next) => enqueue(before, next).table, EMPTY_TABLE)
const problem = (result: Result.Result<unknown, { readonly problem: string }>) =>
  Result.isFailure(result) ? result.failure.problem : undefined

describe("fileKey", () => {
  it.each([
    ["a", "file:a"],
    ["./a", "file:a"],
    ["a//b", "file:a/b"],
    ["a/./b/", "file:a/b"],
    ["a/x/../b", "file:a/b"],
    ["/workspace/a", "file:a"],
    ["//workspace/./a", "file:a"],
    ["workspace/a", "file:workspace/a"],
    ["...", "file:..."],
    [".a/..b", "file:.a/..b"],
    ["a\nb: c", "file:a\nb: c"],
    ["\u00e9", "file:\u00e9"],
    ["e\u0301", "file:e\u0301"],
    [".", "workspace"],
    ["a/..", "workspace"],
    ["/workspace", "workspace"],
    ["/workspace/", "workspace"],
    [".choirtmp", "choirtmp"],
    ["./.choirtmp/recv/a.png", "choirtmp"],
    ["src/.choirtmp", "file:src/.choirtmp"],
    [".choirtmp2", "file:.choirtmp2"]
  ])("gives %j the key %j (D27)", (path, key) => assert.deepStrictEqual(fileKey(path), Result.succeed(key)))

  it.each([
    ["..", "outside"],
    ["../a", "outside"],
    ["a/../../workspace/a", "outside"],
    ["/", "outside"],
    ["/etc/passwd", "outside"],
    ["/workspaces/a", "outside"],
    ["/workspace/../etc", "outside"],
    ["/etc/../workspace/a", "outside"],
    ["", "empty_path"],
    ["a\0b", "nul"],
    ["a\ud800", "not_text"],
    ["\u00e9".repeat(WORKSPACE_PATH_BYTES_MAX / 2 + 1), "path_too_long"]
  ])("refuses %j, which is %s", (path, expected) => {
    const key = fileKey(path)
    assert.strictEqual(problem(key), expected)
    if (Result.isFailure(key)) assert.isAtMost(key.failure.message.length, INVALID_LOCK_CHARS_MAX + 200)
  })

  it("takes the longest path that the kernel takes", () => {
    const path = "a".repeat(WORKSPACE_PATH_BYTES_MAX)
    assert.deepStrictEqual(fileKey(path), Result.succeed(`file:${path}`))
  })

  it.effect("gives 10,000 spellings of one file one key (R18)", () =>
    Effect.gen(function* () {
      const noise = ["./", "/", "x/../", "src/../", "././/", "y/z/../../", "..a/../", ".../.././"]
      const pick = <A>(from: ReadonlyArray<A>) =>
        Effect.map(Random.nextIntBetween(0, from.length - 1), (index) => from[index] as A)
      const spellings = new Set<string>()
      while (spellings.size < 10_000) {
        let path = yield* pick(["", "./", "/workspace/", "//workspace/", "/./workspace//", "x/../"])
        for (const part of ["src", "lib", "a.ts"]) {
          for (let left = yield* Random.nextIntBetween(0, 5); left > 0; left--) {
            const next = yield* pick(noise)
            // A slash at the very start would make the path absolute.
            path += path === "" && next === "/" ? "./" : next
          }
          path += part === "a.ts" ? part : `${part}/`
        }
        spellings.add(path + (yield* pick(["", "/", "/.", "/b/..", "//"])))
      }
      for (const path of spellings) {
        const key = fileKey(path)
        if (!Result.isSuccess(key) || key.success !== "file:src/lib/a.ts")
          assert.fail(`${path}: ${JSON.stringify(key)}`)
      }
    }).pipe(Random.withSeed("spellings"))
  )
})

describe("makeLockset", () => {
  it("brings keys into their canonical form, each once, the exclusive lock before the shared one", () => {
    assert.deepStrictEqual(keys("file:./a S, file:a//b X, file:b/../a X, file:a S, choirtmp S"), [
      "file:a X",
      "file:a/b X",
      "choirtmp S"
    ])
    assert.deepStrictEqual(keys("file:. S, workspace X"), ["workspace X"])
    assert.deepStrictEqual(keys("file:.choirtmp/send/a X, browser_tab X"), ["choirtmp X", "browser_tab X"])
    assert.deepStrictEqual(keys("net:api.example S, ext:mail X"), ["net:api.example S", "ext:mail X"])
  })

  it.each([
    ["file:../a S", "outside"],
    ["file: X", "empty_path"],
    ["workspce X", "unknown_resource"],
    ["/a X", "unknown_resource"],
    ["net: X", "unknown_resource"],
    ["choirtmp\0 X", "unknown_resource"]
  ])("refuses %j, which is %s", (text, expected) => assert.strictEqual(problem(makeLockset(requests(text))), expected))

  it("refuses more locks than a call may take", () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => `file:${index} S`).join(", ")
    assert.isTrue(Result.isSuccess(makeLockset(requests(many(LOCKSET_LOCKS_MAX)))))
    assert.strictEqual(problem(makeLockset(requests(many(LOCKSET_LOCKS_MAX + 1)))), "too_many")
  })
})

describe("conflicts", () => {
  it.each([
    ["file:a S", "file:a S", false],
    ["file:a S", "file:a X", true],
    ["file:a X", "file:a X", true],
    ["file:a X", "file:b X", false],
    ["file:a X", "file:ab X", false],
    ["file:a X", "file:a/b S", true],
    ["file:a S", "file:a/b/c X", true],
    ["file:a S", "file:a/b/c S", false],
    ["workspace S", "file:a S", false],
    ["workspace S", "file:a X", true],
    ["workspace X", "file:a S", true],
    ["workspace X", "workspace S", true],
    ["workspace S", "workspace S", false],
    ["workspace X", "choirtmp X", false],
    ["workspace X", "file:.choirtmp/send/a X", false],
    ["workspace X", "browser_tab X", false],
    ["browser_tab X", "browser_tab X", true],
    ["net:a X", "net:ab X", false],
    ["file:a S, file:b X", "file:c X, file:b/d S", true],
    ["", "workspace X", false]
  ])("says of %j and %j of two cores: %s (R18)", (a, b, expected) => {
    assert.strictEqual(conflicts(claim(CORE, a), claim(OTHER_CORE, b)), expected)
    assert.strictEqual(conflicts(claim(OTHER_CORE, b), claim(CORE, a)), expected)
    assert.strictEqual(conflicts(claim(CORE, a), claim(CORE, b)), expected, "a lane is no excuse")
  })

  it.each([
    ["file:a S", "workspace X", false],
    ["file:a S, file:b/c S", "workspace X", false],
    ["file:a S", "workspace X, browser_tab X", false],
    ["file:a S", "workspace X, file:a X", true],
    ["file:a S", "file:a X", true],
    ["file:a X", "workspace X", true],
    ["file:a S, file:b X", "workspace X", true],
    ["file:a S, choirtmp S", "workspace X", true],
    ["workspace S", "workspace X", true],
    ["file:. S", "workspace X", true]
  ])("says of edge's %j and a core's %j: %s (R17)", (edge, core, expected) => {
    assert.strictEqual(conflicts(claim(EDGE, edge), claim(CORE, core)), expected)
    assert.strictEqual(conflicts(claim(CORE, core), claim(EDGE, edge)), expected)
  })

  it("forgives edge's read nothing but a core's workspace:X (R17)", () => {
    assert.isTrue(conflicts(claim(EDGE, "file:a S"), claim(EDGE, "workspace X")))
    assert.isTrue(conflicts(claim(CORE, "file:a S"), claim(OTHER_CORE, "workspace X")))
  })
})

describe("the queue", () => {
  it("keeps a reader behind a writer that waits, so that writers do not starve (D25)", () => {
    const [reader, writer, late] = [claim(CORE, "file:a S"), claim(OTHER_CORE, "file:a X"), claim(CORE, "file:a S")]
    const full = table(reader, writer, late)
    assert.deepStrictEqual(full, { held: [reader], waiting: [writer, late] })
    const next = release(full, reader)
    assert.deepStrictEqual(next, { table: { held: [writer], waiting: [late] }, granted: [writer] })
    assert.deepStrictEqual(release(next.table, writer).granted, [late])
  })

  it("lets a claim pass those that it does not conflict with", () => {
    const [a, b, c] = [claim(CORE, "file:a X"), claim(OTHER_CORE, "file:a X, file:b X"), claim(CORE, "file:c X")]
    assert.deepStrictEqual(table(a, b, c), { held: [a, c], waiting: [b] })
  })

  it("grants all that a leaving waiter kept back, in order of arrival", () => {
    const holder = claim(CORE, "file:a S")
    const writer = claim(OTHER_CORE, "workspace X")
    const readers = [claim(CORE, "file:a S"), claim(CORE, "file:b S")]
    const full = table(holder, writer, ...readers)
    assert.deepStrictEqual(release(full, writer), {
      table: { held: [holder, ...readers], waiting: [] },
      granted: readers
    })
  })

  it("changes nothing when a claim is let go twice", () => {
    const [a, b] = [claim(CORE, "file:a X"), claim(OTHER_CORE, "file:a X")]
    const once = release(table(a, b), a).table
    assert.deepStrictEqual(release(once, a), { table: once, granted: [] })
  })

  it("names what a claim waits for: holders, and waiters ahead of it", () => {
    const [a, b, c] = [
      claim(CORE, "file:a X"),
      claim(OTHER_CORE, "file:a X, file:b X"),
      claim(EDGE, "file:b X, file:c X")
    ]
    const full = table(a, b, c, claim(CORE, "file:b X"))
    assert.deepStrictEqual(obstacles(full, b), { resources: ["file:a"], lanes: [CORE] })
    assert.deepStrictEqual(obstacles(full, c), { resources: ["file:b"], lanes: [OTHER_CORE] })
  })

  it("knows the reads that a core may be changing under them (R17)", () => {
    const [read, exec, write] = [claim(EDGE, "file:a S"), claim(CORE, "workspace X"), claim(CORE, "file:b X")]
    assert.deepStrictEqual(dirtyReads(table(read, write)), [])
    assert.deepStrictEqual(dirtyReads(table(read, exec)), [read])
    assert.deepStrictEqual(dirtyReads(table(exec, read)), [read])
    // The core that awaits workspace:X has not begun.
    assert.deepStrictEqual(dirtyReads(table(write, exec, read)), [])
  })
})
