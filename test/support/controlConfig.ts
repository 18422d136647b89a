/** The configuration of the in-memory choird: one agent with two places to work, a console and a phone. */
import { Schema } from "effect"
import { Config } from "#schema/Config.ts"

const model = { provider: "p", model: "m", endpoint: "http://127.0.0.1:1/v1", secret: "model-key" }

export const controlConfig = Schema.decodeSync(Config)({
  global_repo: { url: "/repos/global" },
  workspaces: { desk: { path: "/srv/desk" }, shed: { path: "/srv/shed" } },
  models: { small: model },
  gateways: { screen: { type: "console" }, bot: { type: "telegram", secret: "bot-token" } },
  dms: { terminal: { gateway: "screen", user_id: "local" }, phone: { gateway: "bot", user_id: "1" } },
  agents: { ada: { repo: { url: "/repos/ada" }, defaults: { workspace: "desk", llm: "small", dm: "terminal" } } }
})
