/**
 * What the projects of a run share, such as a server: the first that needs it begins it, and the teardown of the last one ends it. Vitest
 * loads the modules of a setup for each project, so the process keeps it and not a module.
 */
interface Held {
  readonly begun: unknown
  holders: number
}

const place = globalThis as { choirTests?: Map<string, Held> }
const all = (place.choirTests ??= new Map())

/** Begins it or takes what another project began; a project calls the second part in its teardown. */
export const heldByProjects = async <A>(
  name: string,
  begin: () => A | Promise<A>,
  end: (begun: A) => void | Promise<void> = () => undefined
): Promise<readonly [begun: A, release: () => Promise<void>]> => {
  const held = all.get(name) ?? { begun: await begin(), holders: 0 }
  held.holders += 1
  all.set(name, held)
  const begun = held.begun as A
  const release = async () => {
    held.holders -= 1
    if (held.holders > 0) return
    all.delete(name)
    await end(begun)
  }
  return [begun, release]
}
