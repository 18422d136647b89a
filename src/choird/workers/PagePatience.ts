import { Context } from "effect"

/** A factor for the limits of every wait for a page: 1, or more on a machine that is known to be slow. */
export const PagePatience = Context.Reference<number>("choir/choird/PagePatience", { defaultValue: () => 1 })
