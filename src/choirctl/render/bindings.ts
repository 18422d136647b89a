import { boundDms, type ResourceBindings } from "#schema/ResourceBindings.ts"

/** What a session is bound to, by kind, as a person reads it: all DMs stand under `dm`. */
export const bindingEntries = (
  bindings: ResourceBindings
): ReadonlyArray<readonly [kind: string, names: ReadonlyArray<string>]> => {
  const { dms: _, ...single } = bindings
  return Object.entries(single).map(([kind, name]) => [kind, kind === "dm" ? boundDms(bindings) : [name]])
}
