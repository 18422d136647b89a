import { assert, describe, it } from "@effect/vitest"
import { toolExecutable } from "#src/shared/image/toolManifest.ts"

describe("toolExecutable", () => {
  it.each([
    ["global", "/choir/tools/global/git_commit", "git_commit"],
    ["agent", "/choir/tools/agent/x/bin/run", "x/bin/run"],
    ["global", "x", "x"],
    ["agent", "x/run", "x/run"]
  ] as const)("finds in %s for %s the file %s", (scope, exec_path, path) => {
    assert.strictEqual(toolExecutable(scope, exec_path), path)
  })

  it.each([
    "",
    "/",
    "/bin/sh",
    "/choir/tools/agent/x",
    "/choir/tools/global/",
    "..",
    "../x",
    "x/../../y",
    "./x",
    "x//y",
    "x/",
    "a\0b",
    "a\nb"
  ])("refuses %j", (exec_path) => {
    assert.isUndefined(toolExecutable("global", exec_path))
  })
})
