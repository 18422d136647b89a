/** A few kilobytes that are pushed unpack to hundreds of megabytes of changed text, which choird is then asked to show a person. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SessionId } from "#schema/Ids.ts"
import { withMemory } from "../support/memory.ts"
import { previewer, makeProposalHome } from "../support/proposals.ts"
import { REPO_FILE_BYTES_MAX } from "#src/choird/repos/Tree.ts"

const SESSION = SessionId.make("0123456789abcdef")
const GROWN_MIB_MAX = 100
const LARGE = 19 * 1024 * 1024

const TEXTS: ReadonlyArray<readonly [string, number, string]> = [
  ["9 files of 19 MiB of short lines", 9, "a\n".repeat(LARGE / 2)],
  ["10 MiB of line breaks", 1, "\n".repeat(REPO_FILE_BYTES_MAX / 2)],
  ["9 MiB of characters that nobody sees", 1, "\u200b".repeat(3 * 1024 * 1024)]
]

describe("a proposed branch that is small to push", () => {
  for (const [what, count, text] of TEXTS) {
    it.live(`with ${what} is refused before it is read, and costs choird no memory`, () =>
      Effect.gen(function* () {
        const home = yield* makeProposalHome
        const preview = yield* previewer(home)
        const branch = `proposal/${SESSION}/x`
        const id = home.agent.blob(text)
        const files = Array.from({ length: count }, (_, at) => ({ path: `notes/${at}.txt`, mode: "100644", id }))
        const tree = home.agent.commit([{ path: "README.md", content: "an agent\n" }, ...files], "scratch")
        const commit = home.agent.git(["commit-tree", `${tree}^{tree}`, "-p", home.base, "-m", "notes"])
        home.agent.git(["update-ref", `refs/heads/${branch}`, commit])
        const payload = { branch, commit, reason: "notes" }
        const { grown_mib, value } = yield* withMemory(
          Effect.result(preview({ agent_id: home.agent_id, session_id: SESSION, kind: "repo_change", payload }))
        )
        assert.isTrue(Result.isFailure(value))
        if (Result.isFailure(value)) {
          assert.strictEqual(value.failure.kind, "TOO_LARGE")
          assert.match(value.failure.reason, /the changed files have \d+ bytes/u)
        }
        assert.isBelow(grown_mib, GROWN_MIB_MAX)
      })
    )
  }
})
