/** Folders in the shapes of public skills, as `choirctl skill check` reads them. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { choirctl } from "../../support/choirctl.ts"
import { temporaryFolder } from "../../support/engines.ts"

const FOLDER = join(import.meta.dirname, "../../corpus/skills")

/** What is said of each as it is; `undefined` for one that is taken. */
const SAID: Readonly<Record<string, RegExp | undefined>> = {
  "bash-part": /Bash\(git status:\*\) allows only part of a tool, which cannot be enforced: write choir\.exec/u,
  "blank-before": /it does not begin with front matter: write --- on the first line/u,
  "bom-crlf": undefined,
  "colon-in-description": undefined,
  "long-body": undefined,
  "mcp-tool": undefined,
  "no-allowed-tools": undefined,
  upper: /its name has "U": write u/u,
  "web-tools": /there is no tool Task: .*--tools[^]*there is no tool AskUserQuestion/u,
  "yaml-tab": /its front matter is not YAML/u
}

const check = Effect.fnUntraced(function* (name: string, ...more: ReadonlyArray<string>) {
  const home = yield* temporaryFolder
  return yield* choirctl(home, ["skill", "check", join(FOLDER, name), ...more])
})

describe("a public folder", () => {
  it("is one of those of the corpus, each with what is said of it", () =>
    assert.deepStrictEqual(readdirSync(FOLDER).sort(), Object.keys(SAID).sort()))

  it.live.each(Object.entries(SAID))("is taken, or refused with what to write: %s", ([name, said]) =>
    Effect.gen(function* () {
      const { code, out } = yield* check(name)
      assert.strictEqual(code, said === undefined ? 0 : 1, out)
      if (said !== undefined) assert.match(out, said)
    })
  )

  it.live.each(["mcp-tool", "web-tools", "bash-part"])("that names foreign tools is taken with --tools: %s", (name) =>
    Effect.gen(function* () {
      const { code, out } = yield* check(name, "--tools", "Read Write Bash")
      assert.strictEqual(code, 0, out)
    })
  )

  it.live("that names a tool of another server is told that nobody here knows it", () =>
    Effect.gen(function* () {
      assert.match((yield* check("mcp-tool")).out, /unknown here: mcp__github__list_issues/u)
    })
  )

  it.live("that names no tools may read, and nothing else", () =>
    Effect.gen(function* () {
      assert.match((yield* check("no-allowed-tools")).out, /capabilities: fs:read$/mu)
    })
  )
})
