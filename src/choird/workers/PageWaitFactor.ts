import { Context } from "effect"

/** A factor for the limits of every wait for a page: 1, or more on a machine that is known to be slow. */
export const PageWaitFactor = Context.Reference<number>("choir/choird/PageWaitFactor", { defaultValue: () => 1 })
