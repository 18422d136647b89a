import { execFileSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { ResourceName } from "#schema/Ids.ts"
import { describeInstallations } from "../support/everyInstallation.ts"
import { makeInstallation } from "../support/installation.ts"
import { makeProvider, offlineModel } from "../support/testing/Provider.ts"

const CREDENTIALS = `printf "protocol=https\\nhost=git.example.org\\npath=x\\n" | git credential fill`

describeInstallations("an agent with a git identity", (place) => {
  it.live("commits under its name, may use its token in a command, and shows it nowhere (14.4, R32)", () =>
    Effect.gen(function* () {
      const provider = yield* makeProvider
      yield* provider.otherwise((request) => offlineModel(request, 0))
      const where = yield* place
      const choir = yield* makeInstallation({
        ...where,
        endpoint: provider.endpoint,
        secrets: { ...where.secrets, git: "canary-token" },
        config: {
          git_identities: {
            ada: {
              name: "Ada",
              email: "ada@example.org",
              secret: "git",
              remotes: ["https://git.example.org/"]
            }
          }
        }
      })
      yield* choir.start
      yield* choir.build
      yield* choir.api.agents.start({ params: choir.params, payload: { git_identity: ResourceName.make("ada") } })
      const script = `git init -q r && git -C r commit -q --allow-empty -m made && ${CREDENTIALS}`
      const { inbox_id } = yield* choir.send("git-1", `run ${script}`)
      yield* choir.settled(inbox_id)
      const { session_id } = yield* choir.api.agents.status({ params: choir.params })
      const history = yield* choir.events(session_id!)
      const results = history.flatMap(({ event }) =>
        event.event_type === "ToolResultCommitted" ? [event.payload] : []
      )
      assert.deepStrictEqual(
        results.map(({ status }) => status),
        ["success"],
        JSON.stringify(results)
      )
      assert.include(JSON.stringify(results), "password=<redacted>")
      const made = ["-C", join(choir.workspace, "r"), "-c", "safe.directory=*", "log", "-1", "--format=%an <%ae>: %s"]
      assert.strictEqual(execFileSync("git", made).toString(), "Ada <ada@example.org>: made\n")
      const asked = yield* provider.requests.all
      assert.notInclude(JSON.stringify([history, asked]), "canary")
      for (const folder of ["logs", "socks"])
        for (const name of readdirSync(join(choir.home, folder), { recursive: true, encoding: "utf8" }))
          if (name.endsWith(".log")) assert.notInclude(readFileSync(join(choir.home, folder, name), "utf8"), "canary")
    }).pipe(Effect.scoped)
  )
})
