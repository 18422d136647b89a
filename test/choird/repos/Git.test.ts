import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeImageHome } from "../../support/images.ts"

const MANIFEST = JSON.stringify({
  llm: { name: "words", description: "d", input_schema: { type: "object" } },
  runtime: { exec_path: "words" }
})

/** The agent's repository as its owner has it: checked out, with one tool. */
const checkedOut = Effect.gen(function* () {
  const home = yield* makeImageHome
  const { agent } = home
  agent.commit({ "tools/words.json": MANIFEST, "tools/words": "#!/bin/sh\n", ".gitignore": "*.log\n" })
  agent.git(["reset", "--quiet", "--hard"])
  const write = (path: string, text: string) => {
    mkdirSync(join(agent.path, path, ".."), { recursive: true })
    writeFileSync(join(agent.path, path), text)
  }
  return { ...home, write, warnings: Effect.map(home.build(), ({ warnings }) => warnings) }
})

const told = (path: string, count: string) => [
  `${count} not built: git -C ${path} add --all && git -C ${path} commit -m "…"`
]

describe("a build", () => {
  it.live("says how many files of a local repository nobody committed, and how they are", () =>
    Effect.gen(function* () {
      const { agent, warnings, write } = yield* checkedOut
      assert.deepStrictEqual(yield* warnings, [])
      write("tools/words", "#!/bin/sh\necho new\n")
      assert.deepStrictEqual(yield* warnings, told(agent.path, `1 uncommitted file in ${agent.path} is`))
      write("tools/more.json", "{")
      rmSync(join(agent.path, "tools/words.json"))
      assert.deepStrictEqual(yield* warnings, told(agent.path, `3 uncommitted files in ${agent.path} are`))
      agent.git(["stash", "--include-untracked", "--quiet"])
      assert.deepStrictEqual(yield* warnings, [])
    })
  )

  it.live("is silent about what no image is made of, what git ignores, and another branch that is checked out", () =>
    Effect.gen(function* () {
      const { agent, warnings, write } = yield* checkedOut
      write("notes.txt", "mine")
      write("tools/words.log", "noise")
      assert.deepStrictEqual(yield* warnings, [])
      agent.git(["checkout", "--quiet", "-b", "try"])
      agent.git(["commit", "--quiet", "--allow-empty", "--message", "try"])
      write("tools/words", "#!/bin/sh\necho new\n")
      assert.deepStrictEqual(yield* warnings, [])
    })
  )

  it.live("starts no program that the repository's own configuration names", () =>
    Effect.gen(function* () {
      const { agent, marker, warnings, write } = yield* checkedOut
      const evil = join(agent.path, "evil.sh")
      writeFileSync(evil, `#!/bin/sh\ntouch ${marker}\ncat\n`, { mode: 0o755 })
      for (const [key, value] of [
        ["core.fsmonitor", evil],
        ["filter.evil.clean", evil],
        ["filter.evil.smudge", evil],
        ["diff.evil.textconv", evil],
        ["diff.evil.command", evil],
        ["diff.external", evil],
        ["core.hooksPath", agent.path]
      ] as const)
        agent.git(["config", key, value])
      writeFileSync(join(agent.path, "post-index-change"), `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 })
      write(".gitattributes", "* filter=evil diff=evil\n")
      write("tools/words", "#!/bin/sh\necho new\n")
      assert.lengthOf(yield* warnings, 1)
      assert.isFalse(existsSync(marker))
    })
  )
})
