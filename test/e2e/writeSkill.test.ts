/** A person who writes a skill from docs/skills.md alone: grades it, adds it, updates the agent, and sees it run from chat. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { agreedSkill } from "../support/addSkill.ts"
import { choirctl, document } from "../support/choirctl.ts"
import { temporaryFolder } from "../support/engines.ts"
import { AGENT, ROOT } from "../support/installation.ts"
import { makeTestInstallation } from "../support/testInstallation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const section = (): string => {
  const page = readFileSync(join(ROOT, "docs/skills.md"), "utf8")
  return page.slice(page.indexOf("## Write one in ten minutes"))
}

/** The first block of JSON below the heading. */
const written = (): string => /```json\n([^]*?)```/u.exec(section())?.[1] ?? ""
/** The words for the offline model. */
const typed = (): string => /`(call choir\.skill\.start [^`]+)`/u.exec(section())?.[1] ?? ""
/** The lines that the page says a trial prints. */
const printed = (): string => {
  const [, block = ""] = /```console\n([^]*?)```/u.exec(section()) ?? []
  return block
    .split("\n")
    .map((line) => line.replace(/^ {3}/u, ""))
    .slice(1)
    .join("\n")
    .trim()
}

describe("a skill from the page", { timeout: 300_000 }, () => {
  it.live("is verified as it stands there, added, and runs from chat without a call of the model for it", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const choir = yield* makeTestInstallation({ endpoint: provider.endpoint })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: {} })
      const file = join(yield* temporaryFolder, "open-questions.json")
      writeFileSync(file, written())
      const run = (...args: ReadonlyArray<string>) => choirctl(choir.home, args)
      assert.include((yield* run("skill", "check", file)).out, "open-questions.json: verified, 9 of 9 points")
      const notes = join(yield* temporaryFolder, "notes")
      mkdirSync(notes)
      writeFileSync(join(notes, "notes.md"), "Buy seeds.\nWho calls the landlord?\n")
      const tried = yield* run("skill", "try", file, "--input", '{"folder":"."}', "--files", notes)
      assert.strictEqual(tried.code, 0, tried.err)
      const timeless = (text: string) => text.replace(/completed in \S+/u, "completed")
      assert.include(timeless(tried.out), timeless(printed()))
      const added = yield* run(...(yield* agreedSkill(choir.home, [file, "--agent", AGENT])))
      assert.strictEqual(added.code, 0, added.err)
      const updated = yield* run("agent", "update", AGENT)
      assert.strictEqual(updated.code, 0, updated.err)
      const [row] = document(
        yield* run("skill", "list", AGENT, "--class", "deterministic", "--tier", "task", "--json")
      ) as ReadonlyArray<{ readonly name: string; readonly grade: string }>
      assert.deepInclude(row, { name: "open-questions", grade: "verified" })
      writeFileSync(join(choir.workspace, "notes.md"), "Buy seeds.\nWho calls the landlord?\n")
      const { inbox_id } = yield* choir.send("open", typed())
      yield* choir.settled(inbox_id)
      const runs = document(yield* run("skill", "runs", AGENT, "open-questions", "--json"))
      assert.include(JSON.stringify(runs), "completed")
    })
  )
})
