/** The built-in tools that an agent lacks because of its configuration, each with the reason. Pure. */
import type { AgentConfig } from "#schema/AgentConfig.ts"

const MAIL = ["choir.email.send", "choir.email.receive", "choir.email.check"] as const

/** Reasons are the ends of sentences about the agent. */
export const unboundTools = ({ email, notion, search, web = "off" }: AgentConfig): ReadonlyMap<string, string> =>
  new Map([
    ...(search === undefined ? [["choir.web.search", "config.json has no search engine"] as const] : []),
    ...(notion === undefined ? [["choir.notion.query", "it is bound to no Notion integration"] as const] : []),
    ...(email === undefined ? MAIL.map((name) => [name, "it is bound to no e-mail account"] as const) : []),
    ...(web === "off" ? [["choir.web.fetch", "its web is off"] as const] : []),
    ...(web === "browse" ? [] : [["choir.web.browse", `its web is ${web}, without a browser`] as const])
  ])
