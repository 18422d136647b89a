/** A script of one search, for rehearsals of scripts. */

/** A skill with a contract that no model runs. */
export const MARKS = {
  name: "marks",
  description: "Flag marks.",
  input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  contract: {
    execution_class: "deterministic",
    does: "finds lines that hold TODO or FIXME",
    does_not: "change files",
    state: { path: { schema: { type: "string" } }, flags: { schema: { type: "array" } } },
    state_read: ["path"],
    state_write: ["flags"],
    assertions: [{ statement: "each flag names its file", path: "flags.*.path", op: "exists" }],
    capabilities: ["fs:read"]
  },
  registry: {
    version: "1.0.0",
    tier: "audit",
    workflow: [
      {
        step: "Search.",
        tool: "choir.fs.search",
        params: { pattern: "TODO|FIXME", path: "${path}" },
        writes: { flags: "matches" }
      }
    ]
  }
}

/** The same with another call or another contract. */
export const marks = (step: object, contract: object = {}) => ({
  ...MARKS,
  contract: { ...MARKS.contract, ...contract },
  registry: { ...MARKS.registry, workflow: [{ ...MARKS.registry.workflow[0], ...step }] }
})
