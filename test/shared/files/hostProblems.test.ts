import { chmodSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import {
  clockProblem,
  fileSizeProblem,
  flockProblem,
  homeWriteProblem,
  longHomeProblem,
  noexecProblem,
  openFilesProblem,
  procProblem,
  temporaryProblem,
  timeZoneProblem
} from "#src/shared/files/hostProblems.ts"

describe("what a host lacks", () => {
  it("is nothing on one that has all of it", () => {
    const folder = mkdtempSync(join(tmpdir(), "choir-host-"))
    const found = [
      procProblem(),
      temporaryProblem(folder),
      openFilesProblem(256),
      fileSizeProblem(256 * 1024 ** 2),
      flockProblem(),
      homeWriteProblem(folder),
      clockProblem(Date.UTC(2026, 0, 1)),
      longHomeProblem(`/${"x".repeat(64)}`),
      noexecProblem(folder),
      ...["", "UTC", ":/etc/localtime", ":Europe/Berlin", "Asia/Kathmandu", undefined].map((name) =>
        timeZoneProblem(name ?? "")
      )
    ]
    rmSync(folder, { recursive: true })
    assert.deepStrictEqual(
      found.filter((each) => each !== undefined),
      []
    )
  })

  it.each([
    [procProblem("/nowhere/fd"), /\/proc is not mounted/u, /mount -t proc/u],
    [
      temporaryProblem("/nowhere/a b"),
      /\/nowhere\/a b.* does not exist/u,
      /^mkdir -p '\/nowhere\/a b', or set TMPDIR/u
    ],
    [openFilesProblem(255), /only 255 files/u, /ulimit -n/u],
    [fileSizeProblem(51_200), /files of at most 50\.0 KiB here/u, /^ulimit -f unlimited/u],
    [flockProblem("flock-of-nobody"), /flock-of-nobody is not in PATH/u, /apt install util-linux/u],
    [clockProblem(0), /says 1970-01-01/u, /timedatectl/u],
    [longHomeProblem(`/${"ü".repeat(33)}`), /has 67 bytes/u, /shorter path/u],
    [timeZoneProblem("Moon"), /"Moon", which is not the name/u, /Europe\/Berlin/u]
  ])("is named with its fix: %o", (found, problem, fix) => {
    assert.match(found?.problem ?? "", problem)
    assert.match(found?.fix ?? "", fix)
  })

  it("does not count as missing where it cannot be tried", () => {
    assert.isUndefined(noexecProblem("/nowhere"))
    assert.isUndefined(openFilesProblem(undefined))
    const file = mkdtempSync(join(tmpdir(), "choir-host-"))
    chmodSync(file, 0o500)
    // Root may write there all the same; another user may not, and then nothing can be said.
    assert.isUndefined(noexecProblem(file))
    rmSync(file, { recursive: true })
  })
})
