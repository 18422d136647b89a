import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import type { AgentConfig } from "#schema/AgentConfig.ts"
import { Config } from "#schema/Config.ts"
import { AgentId, ResourceName } from "#schema/Ids.ts"
import { agentConfig, boundSecrets } from "#src/choird/config/agentShare.ts"
import { BUILT_IN_CAPABILITIES } from "#src/shared/image/builtInTools.ts"
import { lackingTools, lackOf, secretsOfTool, secretsOfTools, TOOL_NEEDS } from "#src/shared/image/toolNeeds.ts"
import { CONFIG } from "../../support/stores.ts"

const name = ResourceName.make
const BOUND = {
  workspace: name("main"),
  llm: name("small"),
  core_llm: name("small"),
  voice_profile: name("calm"),
  git_identity: name("robot"),
  notion: name("notes"),
  email: name("post")
}
const HELPER = AgentId.make("helper")

/** An agent that is bound to one resource of each kind, each with a secret of its own. */
const config = Schema.decodeUnknownSync(Config)({
  ...CONFIG,
  search: { pages: { provider: "brave", secret: "search-key" } },
  notion_integrations: { notes: { secret: "notion-key" } },
  git_identities: { robot: { name: "Robot", email: "r@example.org", secret: "git-key" } },
  tts: {
    speech: { provider: "elevenlabs", endpoint: "https://speech.example.org", model_id: "m", secret: "speech-key" }
  },
  voice_profiles: { calm: { tts: "speech", voice_id: "v1" } },
  email_accounts: {
    post: {
      smtp_host: "mail.example.org",
      smtp_port: 465,
      imap_host: "mail.example.org",
      imap_port: 993,
      secret: "mail-key"
    }
  },
  agents: { helper: { repo: { url: "/srv/a" }, defaults: { workspace: "main", llm: "small" }, web: "fetch" } }
})
const whole = agentConfig(config, BOUND, HELPER)
const bare = agentConfig(config, { workspace: BOUND.workspace, llm: BOUND.llm, core_llm: BOUND.core_llm })

/** The names under the key `secret`, however deep they are, but for those of models. */
const secretsIn = (share: AgentConfig): ReadonlySet<string> => {
  const found = new Set<string>()
  JSON.stringify({ ...share, models: {} }, (key, value: unknown) => {
    if (key === "secret" && typeof value === "string") found.add(value)
    return value
  })
  return found
}

describe("TOOL_NEEDS", () => {
  it("has a row for every built-in tool that goes out into the network or uses a secret", () => {
    for (const [tool, capabilities] of BUILT_IN_CAPABILITIES) {
      const needs = capabilities.includes("net") || capabilities.includes("env:read")
      assert.strictEqual(TOOL_NEEDS.has(tool), needs, tool)
      // Whoever uses secrets has one in the share of an agent that is bound to everything.
      if (capabilities.includes("env:read")) assert.lengthOf(secretsOfTool(tool, whole), 1, tool)
    }
  })

  it("leads to every secret of an agent's share, so that the agent and a trial are given the same ones", () => {
    assert.strictEqual(secretsIn(whole).size, 5)
    assert.sameMembers<string>([...secretsOfTools(whole)], [...secretsIn(whole)])
    assert.includeMembers<string>([...boundSecrets(config, BOUND)], [...secretsIn(whole)])
    assert.deepStrictEqual<unknown>(secretsOfTool("choir.tts.speak", whole), ["speech-key"])
    assert.deepStrictEqual<unknown>(secretsOfTool("choir.exec", whole), ["git-key"])
    assert.deepStrictEqual(secretsOfTool("choir.fs.read", whole), [])
  })

  it("says why an agent lacks a tool, and takes none from one that has what it needs", () => {
    const { search: _, ...without } = { ...bare, web: "off" as const }
    assert.deepStrictEqual(Object.fromEntries(lackingTools(without)), {
      "choir.web.search": "it has no search engine",
      "choir.web.fetch": "its web is off",
      "choir.web.browse": "its web is off, without a browser",
      "choir.notion.query": "it is bound to no Notion integration",
      "choir.email.send": "it is bound to no e-mail account",
      "choir.email.receive": "it is bound to no e-mail account",
      "choir.email.check": "it is bound to no e-mail account",
      "choir.tts.speak": "it is bound to no voice profile"
    })
    assert.deepStrictEqual([...lackingTools(whole).keys()], ["choir.web.browse"])
    const who = { agent: "helper", web: "agents.helper.web" }
    assert.strictEqual(lackOf("choir.tts.speak", bare, who), "helper is bound to no voice profile")
    assert.strictEqual(lackOf("choir.web.browse", whole, who), "agents.helper.web is fetch, without a browser")
    assert.strictEqual(
      TOOL_NEEDS.get("choir.tts.speak")?.fix(HELPER),
      "name one in agents.helper.defaults.voice_profile"
    )
  })
})
