import { Context } from "effect"
import { chromiumProgram } from "#src/shared/web/chromium.ts"

/** Where Chromium is, or `undefined`: looked up at each start, since it may be installed meanwhile. */
export const ChromiumProgram = Context.Reference<() => string | undefined>("choir/choird/ChromiumProgram", {
  defaultValue: () => () => chromiumProgram()
})
