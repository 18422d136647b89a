/** Repositories as large as they may be: loaded side by side, and built into an image. */
import { cpSync, existsSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentId } from "#schema/Ids.ts"
import { Repos } from "#src/choird/repos/Repos.ts"
import { type Entry, makeGitRepo, temporaryFolder } from "../support/gitRepo.ts"
import { AGENT, makeImageHome, reposLayer } from "../support/images.ts"
import { withMemory } from "../support/memory.ts"
import { REPO_LOADS_IN_FLIGHT_MAX } from "#src/choird/reconfiguration/loadHome.ts"

const FILES = 4
const FILE_BYTES = 19 * 1024 * 1024
const GROWN_MIB_MAX = 150
const MANIFEST = JSON.stringify({
  llm: { name: "large", description: "brings much along", input_schema: { type: "object" } },
  runtime: { exec_path: "large" }
})

/** Much below `folder`, of a few kilobytes each in the pack. */
const large = (repo: ReturnType<typeof makeGitRepo>, folder: string): ReadonlyArray<Entry> =>
  Array.from({ length: FILES }, (_, at) => ({
    path: `${folder}/${at}`,
    mode: "100644",
    id: repo.blob(Buffer.alloc(FILE_BYTES, at + 1))
  }))

describe("repositories with files of 19 MiB", () => {
  it.live(`cost little memory when ${REPO_LOADS_IN_FLIGHT_MAX} of them are loaded at once`, () =>
    Effect.gen(function* () {
      const root = yield* temporaryFolder
      const first = makeGitRepo(join(root, "0"))
      first.commit(large(first, "data"))
      const paths = Array.from({ length: REPO_LOADS_IN_FLIGHT_MAX }, (_, at) => join(root, String(at)))
      for (const path of paths.slice(1)) cpSync(first.path, path, { recursive: true })
      const { snapshot } = yield* Effect.provide(Repos, reposLayer(join(root, "home")))
      const load = Effect.forEach(
        paths,
        (url, at) => snapshot({ agent_id: AgentId.make(`agent-${at}`) }, { url, ref: "main" }),
        { concurrency: "unbounded" }
      )
      const { grown_mib, value } = yield* withMemory(load)
      assert.deepStrictEqual(
        value.map(({ files }) => files.length),
        paths.map(() => FILES)
      )
      assert.isBelow(grown_mib, GROWN_MIB_MAX)
    })
  )

  it.live("become an image with all their bytes, and cost little memory", () =>
    Effect.gen(function* () {
      const { agent, build, home } = yield* makeImageHome
      agent.commit([
        { path: "tools/large.json", content: MANIFEST },
        { path: "tools/large", content: "#!/bin/sh\n" },
        ...large(agent, "skills/notes")
      ])
      const { grown_mib, value } = yield* withMemory(build())
      const folder = join(value.path, "choir/skills/notes")
      assert.strictEqual(statSync(join(folder, "3")).size, FILE_BYTES)
      assert.strictEqual(readFileSync(join(folder, "3"))[FILE_BYTES - 1], 4)
      assert.isFalse(existsSync(join(home, "images", AGENT, ".new-")))
      assert.isBelow(grown_mib, GROWN_MIB_MAX)
    })
  )
})
