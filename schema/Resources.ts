/** The one table of the resources that an agent is bound to. Data alone, so that code that only reads states need not load all of Config. */

interface BindingKind {
  /** The section of config.json with the entries that the binding names. */
  readonly section: string
  /** The word for one of them in messages to people. */
  readonly label: string
  /** Whether an agent may go without it. */
  readonly optional: boolean
  /** The field of an entry that an agent keeps from its start, whatever config.json says later; null for none. */
  readonly kept: string | null
}

export const BINDINGS = {
  workspace: { section: "workspaces", label: "workspace", optional: false, kept: "path" },
  llm: { section: "models", label: "model", optional: false, kept: null },
  core_llm: { section: "models", label: "model", optional: false, kept: null },
  dm: { section: "dms", label: "DM", optional: false, kept: null },
  voice_profile: { section: "voice_profiles", label: "voice profile", optional: true, kept: null },
  git_identity: { section: "git_identities", label: "git identity", optional: true, kept: null },
  notion: { section: "notion_integrations", label: "Notion integration", optional: true, kept: null },
  email: { section: "email_accounts", label: "e-mail account", optional: true, kept: "sharing" },
  search: { section: "search", label: "search engine", optional: true, kept: null }
} as const satisfies Readonly<Record<string, BindingKind>>

/** A binding that a start may name. */
export type NamedBinding = keyof typeof BINDINGS
export const NAMED_BINDINGS = Object.keys(BINDINGS) as ReadonlyArray<NamedBinding>

/** The bindings that an agent may do without. */
export type OptionalBinding = {
  [K in NamedBinding]: (typeof BINDINGS)[K]["optional"] extends true ? K : never
}[NamedBinding]
export const OPTIONAL_BINDINGS = NAMED_BINDINGS.filter((key): key is OptionalBinding => BINDINGS[key].optional)

/** The sections whose entries a binding names. */
export type BoundSection = (typeof BINDINGS)[NamedBinding]["section"]
export const BOUND_SECTIONS: ReadonlyArray<BoundSection> = [
  ...new Set(NAMED_BINDINGS.map((key) => BINDINGS[key].section))
]
